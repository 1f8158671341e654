/* Convolution fused with max pooling; the maximum of a tile for four channels at once. */
#include "vec.h"

#include <stddef.h>

/* As in tiles/conv2d_pool.c: y = max(y, sums + bias), NaN larger than all numbers. */
static inline void ag_pool_max_mve(float *y, uint8_t *index, const float *sums, const float *bias,
                                   int32_t element, int32_t count, int32_t outputs) {
    const mve_pred16_t active = vctp32q((uint32_t)outputs);
    const float32x4_t biases = vldrwq_z_f32(bias, active);
    float32x4_t best = element == 0 ? vaddq_f32(vldrwq_z_f32(sums, active), biases) : vldrwq_z_f32(y, active);
    uint32x4_t which = element == 0 ? vdupq_n_u32(0) : vldrbq_z_u32(index, active);
    for (int32_t i = element == 0 ? 1 : 0; i < count; i++) {
        const float32x4_t sum = vaddq_f32(vldrwq_z_f32(sums + (ptrdiff_t)i * AG_TILE_N, active), biases);
        const mve_pred16_t larger = vcmpgtq_f32(sum, best) | vcmpneq_f32(sum, sum);
        best = vpselq_f32(sum, best, larger);
        which = vpselq_u32(vdupq_n_u32((uint32_t)(element + i)), which, larger);
    }
    vstrwq_p_f32(y, best, active);
    vstrbq_p_u32(index, which, active);
}

#define AG_POOL_MAX ag_pool_max_mve
#include "tiles/conv2d_pool.c"
