/* Sums of sixteen adjacent columns at a time, then of four and of one. */
#include "ag_kernels.h"
#include "vec.h"

enum { LANES = 4, COLUMNS = 16 };

void ag_column_sums_f32_neon(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                             float beta) {
    for (; n >= COLUMNS; n -= COLUMNS, a += COLUMNS, y += COLUMNS) {
        const float *row = a;
        float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
        for (int32_t i = 0; i < m; i++, row += lda) {
            s0 = vaddq_f32(s0, vld1q_f32(row));
            s1 = vaddq_f32(s1, vld1q_f32(row + LANES));
            s2 = vaddq_f32(s2, vld1q_f32(row + 2 * LANES));
            s3 = vaddq_f32(s3, vld1q_f32(row + 3 * LANES));
        }
        scale_add4(y, s0, alpha, beta);
        scale_add4(y + LANES, s1, alpha, beta);
        scale_add4(y + 2 * LANES, s2, alpha, beta);
        scale_add4(y + 3 * LANES, s3, alpha, beta);
    }
    for (; n >= LANES; n -= LANES, a += LANES, y += LANES) {
        const float *row = a;
        float32x4_t even = vdupq_n_f32(0.0f), odd = even;
        int32_t i = 0;
        for (; i + 2 <= m; i += 2, row += 2 * (ptrdiff_t)lda) {
            even = vaddq_f32(even, vld1q_f32(row));
            odd = vaddq_f32(odd, vld1q_f32(row + lda));
        }
        if (i < m) {
            even = vaddq_f32(even, vld1q_f32(row));
        }
        scale_add4(y, vaddq_f32(even, odd), alpha, beta);
    }
    for (; n > 0; n--, a++, y++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < m; i++) {
            sum += a[(ptrdiff_t)i * lda];
        }
        *y = scale_add(sum, alpha, beta, y);
    }
}
