/* Sizes of tiles, and differences between AArch32 and AArch64: AArch64 has 32 registers of four floats,
 * AArch32 16; multiply-add by a lane is fused in AArch64 and rounds twice in AArch32. */
#ifndef AG_NEON_VEC_H
#define AG_NEON_VEC_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define AG_TILE_M 4
#define AG_CHANNEL_TILE 8
#if defined AG_TILE_N /* narrow.h */
#elif defined __aarch64__
#define AG_TILE_N 16
#else
#define AG_TILE_N 8
#endif

#if defined __aarch64__
#define FMA_LANE(sum, v, w, lane) vfmaq_laneq_f32(sum, v, w, lane)

/* The horizontal sums of four vectors. */
static inline float32x4_t horizontal_sums(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}
#else
#define FMA_LANE(sum, v, w, lane)                                                                            \
    vmlaq_lane_f32(sum, v, (lane) < 2 ? vget_low_f32(w) : vget_high_f32(w), (lane) & 1)

static inline float32x2_t pairwise_sums(float32x4_t a, float32x4_t b) {
    return vpadd_f32(vadd_f32(vget_low_f32(a), vget_high_f32(a)),
                     vadd_f32(vget_low_f32(b), vget_high_f32(b)));
}

static inline float32x4_t horizontal_sums(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
    return vcombine_f32(pairwise_sums(a, b), pairwise_sums(c, d));
}
#endif

/* alpha * sum + beta * *y; *y is not read where beta == 0 */
static inline float scale_add(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

static inline void scale_add4(float *y, float32x4_t sum, float alpha, float beta) {
    sum = vmulq_n_f32(sum, alpha);
    vst1q_f32(y, beta == 0.0f ? sum : vmlaq_n_f32(sum, vld1q_f32(y), beta));
}

#endif
