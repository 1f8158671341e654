/* Four elements at a time with Helium. */
#include "ag_kernels.h"

#include <arm_mve.h>

enum { LANES = 4 };

static inline float32x4_t axpby4(float32x4_t x, float32x4_t y, float alpha, float beta) {
    return beta == 1.0f ? vfmaq_n_f32(y, x, alpha) : vfmaq_n_f32(vmulq_n_f32(x, alpha), y, beta);
}

/* y = alpha x + beta y; beta is 1, or not 0 */
static inline void axpby(const float *x, float *y, int32_t n, float alpha, float beta) {
    for (int32_t remaining = n >> 2; remaining > 0; remaining--, x += LANES, y += LANES) {
        vstrwq_f32(y, axpby4(vldrwq_f32(x), vldrwq_f32(y), alpha, beta));
    }
    if ((n &= LANES - 1) > 0) {
        const mve_pred16_t p = vctp32q((uint32_t)n);
        vstrwq_p_f32(y, axpby4(vldrwq_z_f32(x, p), vldrwq_z_f32(y, p), alpha, beta), p);
    }
}

void ag_axpby_f32_mve(const float *x, float *y, int32_t n, float alpha, float beta) {
    if (beta == 1.0f) {
        axpby(x, y, n, alpha, 1.0f);
    } else if (beta != 0.0f) {
        axpby(x, y, n, alpha, beta);
    } else {
        for (int32_t remaining = n >> 2; remaining > 0; remaining--, x += LANES, y += LANES) {
            vstrwq_f32(y, vmulq_n_f32(vldrwq_f32(x), alpha));
        }
        if ((n &= LANES - 1) > 0) {
            const mve_pred16_t p = vctp32q((uint32_t)n);
            vstrwq_p_f32(y, vmulq_n_f32(vldrwq_z_f32(x, p), alpha), p);
        }
    }
}
