/* Sums of sixteen adjacent columns at a time, then of four. */
#include "ag_kernels.h"

#include <arm_mve.h>
#include <stddef.h>

enum { LANES = 4, COLUMNS = 16 };

static inline void scale_add(float *y, float32x4_t sum, float alpha, float beta) {
    sum = vmulq_n_f32(sum, alpha);
    vstrwq_f32(y, beta == 0.0f ? sum : vfmaq_n_f32(sum, vldrwq_f32(y), beta));
}

void ag_column_sums_f32_mve(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                            float beta) {
    for (; n >= COLUMNS; n -= COLUMNS, a += COLUMNS, y += COLUMNS) {
        const float *row = a;
        float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
        int32_t remaining = m;
        do {
            s0 = vaddq_f32(s0, vldrwq_f32(row));
            s1 = vaddq_f32(s1, vldrwq_f32(row + LANES));
            s2 = vaddq_f32(s2, vldrwq_f32(row + 2 * LANES));
            s3 = vaddq_f32(s3, vldrwq_f32(row + 3 * LANES));
            row += lda;
        } while (--remaining > 0);
        scale_add(y, s0, alpha, beta);
        scale_add(y + LANES, s1, alpha, beta);
        scale_add(y + 2 * LANES, s2, alpha, beta);
        scale_add(y + 3 * LANES, s3, alpha, beta);
    }
    for (; n > 0; n -= LANES, a += LANES, y += LANES) {
        const mve_pred16_t p = vctp32q((uint32_t)n);
        const float *row = a;
        float32x4_t sum = vdupq_n_f32(0.0f);
        int32_t remaining = m;
        do {
            sum = vaddq_f32(sum, vldrwq_z_f32(row, p));
            row += lda;
        } while (--remaining > 0);
        sum = vmulq_n_f32(sum, alpha);
        if (beta != 0.0f) {
            sum = vfmaq_n_f32(sum, vldrwq_z_f32(y, p), beta);
        }
        vstrwq_p_f32(y, sum, p);
    }
}
