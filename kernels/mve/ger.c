/* The outer product added to a matrix with Helium: four rows and four columns at a time. */
#include "ag_kernels.h"

#include <arm_mve.h>
#include <stddef.h>

enum { ROWS = 4, LANES = 4 };

void ag_ger_f32_mve(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                    float beta) {
    const mve_pred16_t tail = vctp32q((uint32_t)(n & (LANES - 1)));
    int32_t i = 0;
    for (; beta == 1.0f && i + ROWS <= m; i += ROWS) {
        const float x0 = alpha * x[i], x1 = alpha * x[i + 1], x2 = alpha * x[i + 2], x3 = alpha * x[i + 3];
        float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda;
        const float *py = y;
        for (int32_t q = n >> 2; q > 0; q--) {
            const float32x4_t v = vldrwq_f32(py);
            vstrwq_f32(r0, vfmaq_n_f32(vldrwq_f32(r0), v, x0));
            vstrwq_f32(r1, vfmaq_n_f32(vldrwq_f32(r1), v, x1));
            vstrwq_f32(r2, vfmaq_n_f32(vldrwq_f32(r2), v, x2));
            vstrwq_f32(r3, vfmaq_n_f32(vldrwq_f32(r3), v, x3));
            py += LANES, r0 += LANES, r1 += LANES, r2 += LANES, r3 += LANES;
        }
        if ((n & (LANES - 1)) != 0) {
            const float32x4_t v = vldrwq_z_f32(py, tail);
            vstrwq_p_f32(r0, vfmaq_n_f32(vldrwq_z_f32(r0, tail), v, x0), tail);
            vstrwq_p_f32(r1, vfmaq_n_f32(vldrwq_z_f32(r1, tail), v, x1), tail);
            vstrwq_p_f32(r2, vfmaq_n_f32(vldrwq_z_f32(r2, tail), v, x2), tail);
            vstrwq_p_f32(r3, vfmaq_n_f32(vldrwq_z_f32(r3, tail), v, x3), tail);
        }
    }
    for (; i < m; i++) {
        ag_axpby_f32_mve(y, a + (ptrdiff_t)i * lda, n, alpha * x[i], beta);
    }
}
