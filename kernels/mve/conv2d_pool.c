/* Convolution fused with max pooling; the maximum of a tile for four channels at once. */

#include "vec.h"

#include <arm_mve.h>
#include <stdbool.h>

/* As in tiles/conv2d_pool.c: y = max(y, sums + bias), NaN larger than all numbers. */
static inline void ag_pool_max_mve(float *y, uint8_t *index, float (*sums)[AG_TILE_N], const float *bias,
                                   const uint8_t *element, int32_t count, int32_t outputs, bool first) {
    const mve_pred16_t active = vctp32q((uint32_t)outputs);
    const float32x4_t b = vldrwq_z_f32(bias, active);
    float32x4_t best = first ? vaddq_f32(vldrwq_f32(sums[0]), b) : vldrwq_z_f32(y, active);
    uint32x4_t which = first ? vdupq_n_u32(element[0]) : vldrbq_z_u32(index, active);
    for (int32_t i = first ? 1 : 0; i < count; i++) {
        const float32x4_t sum = vaddq_f32(vldrwq_f32(sums[i]), b);
        const mve_pred16_t larger = vcmpgtq_f32(sum, best) | vcmpneq_f32(sum, sum);
        best = vpselq_f32(sum, best, larger);
        which = vpselq_u32(vdupq_n_u32(element[i]), which, larger);
    }
    vstrwq_p_f32(y, best, active);
    vstrbq_p_u32(index, which, active);
}

#define AG_POOL_MAX ag_pool_max_mve
#include "tiles/conv2d_pool.c"
