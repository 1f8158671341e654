/* The shared part of the state during a round. Internal to rounds. */
#ifndef AG_ROUND_SHARED_H
#define AG_ROUND_SHARED_H

#include "ag_round.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_ROUND_CHUNK = 64 }; /* bytes that are read of the start at once */

static inline bool ag_round_has(const ag_shared *s, bool local_buffers) {
    return !(local_buffers && s->is_buffer);
}

static inline uint32_t ag_round_size(ag_shared_kind kind) {
    return kind == AG_SHARED_F32 ? 4 : 1;
}

/* Bytes of the state at the start of the round. */
int ag_round_read(const ag_record *start, uint32_t offset, void *data, uint32_t bytes);

/* The checksum of the shared part: in memory, or with `start` in that checkpoint. */
int ag_round_sum(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum);

float ag_round_element(const uint8_t *data, ag_shared_kind kind);

/* x rounded up or down at random, such that it is x on average; the nearest of `low` to `high`. x is finite.
 */
int8_t ag_round_rounded(float x, float u, int32_t low, int32_t high);

/* w -= rate * (w - w0) of all parameters. The product is rounded before it is subtracted. */
int ag_round_pull(const ag_round *r, float rate, uint32_t seed);

#ifdef __cplusplus
}
#endif
#endif
