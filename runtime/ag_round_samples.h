/* The records of the samples during a round. Internal to rounds. */
#ifndef AG_ROUND_SAMPLES_H
#define AG_ROUND_SAMPLES_H

#include "ag_round.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the board has samples to train on, and their records fit the inputs and targets of the model. */
bool ag_round_samples_fit(const ag_round *r);

/* The samples of a step with n requested: 0 if there cannot be so many. A step takes one record if the size
 * of an array does not depend on n. */
uint32_t ag_round_samples_of_step(const ag_round *r, uint32_t n);

/* Reads record `record` of the samples into row `row` of the inputs and targets. */
int ag_round_read_row(const ag_round *r, uint32_t record, uint32_t row);

#ifdef __cplusplus
}
#endif
#endif
