/* Max pooling with Helium: four channels at a time, the tail predicated. */
#include <arm_mve.h>

static inline void ag_pool_init(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k += 4) {
        const mve_pred16_t active = vctp32q((uint32_t)(c - k));
        vstrwq_p_f32(y + k, vldrwq_z_f32(x + k, active), active);
        vstrbq_p_u32(index + k, vdupq_n_u32((uint32_t)tap), active);
    }
}

static inline void ag_pool_update(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k += 4) {
        const mve_pred16_t active = vctp32q((uint32_t)(c - k));
        const float32x4_t next = vldrwq_z_f32(x + k, active), best = vldrwq_z_f32(y + k, active);
        const mve_pred16_t larger = vcmpgtq_m_f32(next, best, active) | vcmpneq_m_f32(next, next, active);
        vstrwq_p_f32(y + k, next, larger);
        vstrbq_p_u32(index + k, vdupq_n_u32((uint32_t)tap), larger);
    }
}

static inline void ag_pool_scatter(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                   const int32_t *offsets) {
    for (int32_t k = 0; k < c; k += 4, dx += 4) {
        const mve_pred16_t active = vctp32q((uint32_t)(c - k));
        const uint32x4_t tap = vldrbq_z_u32(index + k, active);
        const int32x4_t offset = vldrwq_gather_shifted_offset_z_s32(offsets, tap, active);
        const uint32x4_t at = vaddq_u32(vreinterpretq_u32_s32(offset), vidupq_n_u32(0, 1));
        const float32x4_t sum =
            vaddq_f32(vldrwq_gather_shifted_offset_z_f32(dx, at, active), vldrwq_z_f32(dy + k, active));
        vstrwq_scatter_shifted_offset_p_f32(dx, at, sum, active);
    }
}

#define AG_POOL_CHANNELS
#include "tiles/max_pool2d.c"
