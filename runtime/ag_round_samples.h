/* The records of the samples during a round. Internal to rounds. */
#ifndef AG_ROUND_SAMPLES_H
#define AG_ROUND_SAMPLES_H

#include "ag_round.h"

#ifdef __cplusplus
extern "C" {
#endif

bool ag_round_samples_fit(const ag_round *r);

/* The samples of a step with n requested: 0 if there cannot be so many. An array whose size does not
 * depend on n takes all of it from one sample. */
uint32_t ag_round_samples_of_step(const ag_round *r, uint32_t n);

/* Reads record `record` of the samples into row `row` of the inputs and targets. */
int ag_round_read_row(const ag_round *r, uint32_t record, uint32_t row);

#ifdef __cplusplus
}
#endif
#endif
