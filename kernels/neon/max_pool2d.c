/* Max pooling, four channels at a time. */
#include <arm_neon.h>
#include <string.h>

static inline void ag_pool_init(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    memcpy(y, x, (size_t)c * sizeof *y);
    memset(index, tap, (size_t)c);
}

static inline void ag_pool_update(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    int32_t k = 0;
    for (; k + 4 <= c; k += 4) {
        const float32x4_t next = vld1q_f32(x + k), best = vld1q_f32(y + k);
        /* larger, or NaN, which is not equal to itself */
        const uint32x4_t larger = vorrq_u32(vcgtq_f32(next, best), vmvnq_u32(vceqq_f32(next, next)));
        const uint16x4_t mask16 = vmovn_u32(larger);
        const uint8x8_t mask8 = vmovn_u16(vcombine_u16(mask16, mask16));
        uint32_t old;
        memcpy(&old, index + k, sizeof old);
        const uint8x8_t kept = vreinterpret_u8_u32(vdup_n_u32(old));
        vst1q_f32(y + k, vbslq_f32(larger, next, best));
        old = vget_lane_u32(vreinterpret_u32_u8(vbsl_u8(mask8, vdup_n_u8((uint8_t)tap), kept)), 0);
        memcpy(index + k, &old, sizeof old);
    }
    for (; k < c; k++) {
        const float next = x[k];
        if (next > y[k] || next != next) {
            y[k] = next;
            index[k] = (uint8_t)tap;
        }
    }
}

static inline void ag_pool_scatter(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                   const int32_t *offsets) {
    for (int32_t k = 0; k < c; k++, dx++) {
        dx[offsets[index[k]]] += dy[k];
    }
}

#define AG_POOL_CHANNELS
#include "tiles/max_pool2d.c"
