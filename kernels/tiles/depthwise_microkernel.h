/* The depthwise micro-kernel interface of a backend: sums of products of AG_CHANNEL_TILE adjacent channels,
 * held in registers over the whole reduction. Depthwise convolution and average pooling (window_sums.h) are
 * written once on top of it.
 *
 *     a:  [ch 0 .. ch T-1] [..] [..]     k products per run, a_step bytes apart
 *     b:  [ch 0 .. ch T-1] [..] [..]     k_runs runs, one per row of the window
 *     c = init + sum of a * b            for `count` results; the next one at a + a_next, c + c_next */
#ifndef AG_DEPTHWISE_MICROKERNEL_H
#define AG_DEPTHWISE_MICROKERNEL_H

#include "tiles/helpers.h"
#include "tiles/symbols.h"

/* `count` results of AG_CHANNEL_TILE floats: c = init + the sum of a * b over `k_runs` runs of k products.
 * All results share b; their a are a_next apart, the results c_next apart. Steps, skips and distances are in
 * bytes; a skip is added between two runs, on top of the step after the last product. k, k_runs and count are
 * >= 1. */
typedef struct {
    const float *a, *b;
    int32_t a_step, b_step;
    int32_t k, k_runs;
    int32_t a_skip, b_skip;
    const float *init;
    float *c;
    int32_t count;
    int32_t a_next, c_next;
    /* With AG_GENERAL_TILES */
    int32_t channels; /* at most AG_CHANNEL_TILE */
    int32_t
        k_blocks; /* of k_runs each; the first products of two blocks are a_block and b_block bytes apart */
    ptrdiff_t a_block, b_block;
} ag_depthwise_tile;

typedef void ag_depthwise_microkernel_fn(const ag_depthwise_tile *s);
ag_depthwise_microkernel_fn AG_DEPTHWISE_MICROKERNEL;

#endif
