/* The shared part of the state during a round. Internal to rounds. */
#ifndef AG_ROUND_SHARED_H
#define AG_ROUND_SHARED_H

#include "ag_round.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both return a status of ag_round.h. */

/* The checksum of the shared part: in memory, or with `start` in that checkpoint. */
int ag_round_sum(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum);

/* w -= rate * (w - w0) of all parameters. The product is rounded before it is subtracted. */
int ag_round_pull(const ag_round *r, float rate, uint32_t seed);

#ifdef __cplusplus
}
#endif
#endif
