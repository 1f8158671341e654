/* Sums of sixteen adjacent columns at a time, then of four and of one. */
#include "ag_kernels.h"
#include "vec.h"

enum { COLUMNS = 16 };

/* the end of the block of rows that begins at row i of m */
static inline int32_t block_end(int32_t i, int32_t m) {
    return m - i < AG_SUM_ROWS ? m : i + AG_SUM_ROWS;
}

void ag_column_sums_f32_neon(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                             float beta) {
    for (; n >= COLUMNS; n -= COLUMNS, a += COLUMNS, y += COLUMNS) {
        const float *row = a;
        float32x4_t sum0 = vdupq_n_f32(0.0f), sum1 = sum0, sum2 = sum0, sum3 = sum0;
        for (int32_t i = 0; i < m;) {
            const int32_t end = block_end(i, m);
            float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
            for (; i < end; i++, row += lda) {
                s0 = vaddq_f32(s0, vld1q_f32(row));
                s1 = vaddq_f32(s1, vld1q_f32(row + LANES));
                s2 = vaddq_f32(s2, vld1q_f32(row + 2 * LANES));
                s3 = vaddq_f32(s3, vld1q_f32(row + 3 * LANES));
            }
            sum0 = vaddq_f32(sum0, s0);
            sum1 = vaddq_f32(sum1, s1);
            sum2 = vaddq_f32(sum2, s2);
            sum3 = vaddq_f32(sum3, s3);
        }
        scale_add4(y, sum0, alpha, beta);
        scale_add4(y + LANES, sum1, alpha, beta);
        scale_add4(y + 2 * LANES, sum2, alpha, beta);
        scale_add4(y + 3 * LANES, sum3, alpha, beta);
    }
    for (; n >= LANES; n -= LANES, a += LANES, y += LANES) {
        const float *row = a;
        float32x4_t sum = vdupq_n_f32(0.0f);
        for (int32_t i = 0; i < m;) {
            const int32_t end = block_end(i, m);
            float32x4_t even = vdupq_n_f32(0.0f), odd = even;
            for (; i + 2 <= end; i += 2, row += 2 * (ptrdiff_t)lda) {
                even = vaddq_f32(even, vld1q_f32(row));
                odd = vaddq_f32(odd, vld1q_f32(row + lda));
            }
            if (i < end) {
                even = vaddq_f32(even, vld1q_f32(row));
                i++, row += lda;
            }
            sum = vaddq_f32(sum, vaddq_f32(even, odd));
        }
        scale_add4(y, sum, alpha, beta);
    }
    for (; n > 0; n--, a++, y++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < m;) {
            const int32_t end = block_end(i, m);
            float block = 0.0f;
            for (; i < end; i++) {
                block += a[(ptrdiff_t)i * lda];
            }
            sum += block;
        }
        *y = scale_add(sum, alpha, beta, y);
    }
}
