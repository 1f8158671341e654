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
        float32x4_t sum0 = vdupq_n_f32(0.0f), sum1 = sum0, sum2 = sum0, sum3 = sum0;
        for (int32_t i = 0; i < m; i += AG_SUM_ROWS) {
            float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
            int32_t remaining = m - i < AG_SUM_ROWS ? m - i : AG_SUM_ROWS;
            do {
                s0 = vaddq_f32(s0, vldrwq_f32(row));
                s1 = vaddq_f32(s1, vldrwq_f32(row + LANES));
                s2 = vaddq_f32(s2, vldrwq_f32(row + 2 * LANES));
                s3 = vaddq_f32(s3, vldrwq_f32(row + 3 * LANES));
                row += lda;
            } while (--remaining > 0);
            sum0 = vaddq_f32(sum0, s0);
            sum1 = vaddq_f32(sum1, s1);
            sum2 = vaddq_f32(sum2, s2);
            sum3 = vaddq_f32(sum3, s3);
        }
        scale_add(y, sum0, alpha, beta);
        scale_add(y + LANES, sum1, alpha, beta);
        scale_add(y + 2 * LANES, sum2, alpha, beta);
        scale_add(y + 3 * LANES, sum3, alpha, beta);
    }
    for (; n > 0; n -= LANES, a += LANES, y += LANES) {
        const mve_pred16_t p = vctp32q((uint32_t)n);
        const float *row = a;
        float32x4_t sum = vdupq_n_f32(0.0f);
        for (int32_t i = 0; i < m; i += AG_SUM_ROWS) {
            float32x4_t block = vdupq_n_f32(0.0f);
            int32_t remaining = m - i < AG_SUM_ROWS ? m - i : AG_SUM_ROWS;
            do {
                block = vaddq_f32(block, vldrwq_z_f32(row, p));
                row += lda;
            } while (--remaining > 0);
            sum = vaddq_f32(sum, block);
        }
        sum = vmulq_n_f32(sum, alpha);
        if (beta != 0.0f) {
            sum = vfmaq_n_f32(sum, vldrwq_z_f32(y, p), beta);
        }
        vstrwq_p_f32(y, sum, p);
    }
}
