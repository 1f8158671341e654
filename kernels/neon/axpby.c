/* Sixteen elements at a time, then four and one: y = alpha x, y + alpha x, alpha x + beta y. */
#include "ag_kernels.h"
#include "vec.h"

enum { LANES = 4, BLOCK = 16 };
typedef enum { DROPPED, KEPT, SCALED } old_element;

static inline float32x4_t mixed(old_element old, const float *x, const float *y, float alpha, float beta) {
    const float32x4_t factor = vdupq_n_f32(alpha), ax = vmulq_f32(vld1q_f32(x), factor);
    if (old == DROPPED) {
        return ax;
    }
    return old == KEPT ? vfmaq_f32(vld1q_f32(y), vld1q_f32(x), factor)
                       : vfmaq_f32(ax, vld1q_f32(y), vdupq_n_f32(beta));
}

/* `old` is a constant, and tells beta */
static inline void mix(old_element old, const float *x, float *y, int32_t n, float alpha, float beta) {
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, y += BLOCK) {
        const float32x4_t v0 = mixed(old, x, y, alpha, beta);
        const float32x4_t v1 = mixed(old, x + LANES, y + LANES, alpha, beta);
        const float32x4_t v2 = mixed(old, x + 2 * LANES, y + 2 * LANES, alpha, beta);
        const float32x4_t v3 = mixed(old, x + 3 * LANES, y + 3 * LANES, alpha, beta);
        vst1q_f32(y, v0);
        vst1q_f32(y + LANES, v1);
        vst1q_f32(y + 2 * LANES, v2);
        vst1q_f32(y + 3 * LANES, v3);
    }
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES) {
        vst1q_f32(y, mixed(old, x, y, alpha, beta));
    }
    for (; n > 0; n--, x++, y++) {
        *y = finished(*x, alpha, beta, y);
    }
}

void ag_axpby_f32_neon(const float *x, float *y, int32_t n, float alpha, float beta) {
    if (beta == 0.0f) {
        mix(DROPPED, x, y, n, alpha, beta);
    } else if (beta == 1.0f) {
        mix(KEPT, x, y, n, alpha, beta);
    } else {
        mix(SCALED, x, y, n, alpha, beta);
    }
}
