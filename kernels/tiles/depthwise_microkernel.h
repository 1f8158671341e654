/* What a backend of channel-wise kernels provides: sums of products of AG_LANES neighbouring channels, kept
 * in registers from the first product to the last. Depthwise convolutions and means over windows (windows.h)
 * are written once over it. */
#ifndef AG_DEPTHWISE_MICROKERNEL_H
#define AG_DEPTHWISE_MICROKERNEL_H

#include <stdint.h>

#ifndef AG_CHANNEL_TILE
#error "include the backend's own lanes_size.h first"
#endif

/* `count` results of AG_LANES floats: c = start + the sum of a * b over `segments` runs of k products. All
 * results share b; their a are a_next apart, c_next apart lie they themselves. Steps, skips and distances are
 * in bytes; a skip is added between two runs, beyond the step behind the last product. k, segments and count
 * are 1 or more. */
typedef struct {
    const float *a, *b;
    int32_t a_step, b_step;
    int32_t k, k_runs;
    int32_t a_skip, b_skip;
    const float *start;
    float *c;
    int32_t count;
    int32_t a_next, c_next;
} ag_depthwise_tile;

typedef void ag_depthwise_microkernel_fn(const ag_depthwise_tile *s);
ag_depthwise_microkernel_fn AG_DEPTHWISE_MICROKERNEL;

#endif
