/* Sixteen elements at a time, then four and one, with separate code for beta == 0, beta == 1 and any other
 * beta. */
#include "ag_kernels.h"
#include "vec.h"

enum { LANES = 4, BLOCK = 16 };
typedef enum { BETA_ZERO, BETA_ONE, BETA_ANY } beta_mode;

static inline float32x4_t axpby4(beta_mode mode, const float *x, const float *y, float alpha, float beta) {
    const float32x4_t factor = vdupq_n_f32(alpha), ax = vmulq_f32(vld1q_f32(x), factor);
    if (mode == BETA_ZERO) {
        return ax;
    }
    return mode == BETA_ONE ? vfmaq_f32(vld1q_f32(y), vld1q_f32(x), factor)
                            : vfmaq_f32(ax, vld1q_f32(y), vdupq_n_f32(beta));
}

/* `mode` is a constant that follows from beta */
static inline void axpby(beta_mode mode, const float *x, float *y, int32_t n, float alpha, float beta) {
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, y += BLOCK) {
        const float32x4_t v0 = axpby4(mode, x, y, alpha, beta);
        const float32x4_t v1 = axpby4(mode, x + LANES, y + LANES, alpha, beta);
        const float32x4_t v2 = axpby4(mode, x + 2 * LANES, y + 2 * LANES, alpha, beta);
        const float32x4_t v3 = axpby4(mode, x + 3 * LANES, y + 3 * LANES, alpha, beta);
        vst1q_f32(y, v0);
        vst1q_f32(y + LANES, v1);
        vst1q_f32(y + 2 * LANES, v2);
        vst1q_f32(y + 3 * LANES, v3);
    }
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES) {
        vst1q_f32(y, axpby4(mode, x, y, alpha, beta));
    }
    for (; n > 0; n--, x++, y++) {
        *y = scale_add(*x, alpha, beta, y);
    }
}

void ag_axpby_f32_neon(const float *x, float *y, int32_t n, float alpha, float beta) {
    if (beta == 0.0f) {
        axpby(BETA_ZERO, x, y, n, alpha, beta);
    } else if (beta == 1.0f) {
        axpby(BETA_ONE, x, y, n, alpha, beta);
    } else {
        axpby(BETA_ANY, x, y, n, alpha, beta);
    }
}
