/* Sums of eight adjacent columns at a time, then of four, then of one. */
#include "ag_kernels.h"

#include <stddef.h>

enum { MAX_WIDTH = 8 };

/* y[0..width) = alpha * the sums of `width` columns + beta * y; `width` is a constant */
static inline void columns(int32_t width, const float *a, int32_t lda, float *y, int32_t m, float alpha,
                           float beta) {
    float sums[MAX_WIDTH] = {0.0f};
    while (m > 0) {
        int32_t rows = m < AG_SUM_ROWS ? m : AG_SUM_ROWS;
        float block[MAX_WIDTH] = {0.0f};
        m -= rows;
        for (; rows > 0; rows--, a += lda) {
            for (int32_t q = 0; q < width; q++) {
                block[q] += a[q];
            }
        }
        for (int32_t q = 0; q < width; q++) {
            sums[q] += block[q];
        }
    }
    for (int32_t q = 0; q < width; q++) {
        y[q] = beta == 0.0f ? alpha * sums[q] : alpha * sums[q] + beta * y[q];
    }
}

void ag_column_sums_f32_fast(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                             float beta) {
    int32_t j = 0;
    for (; j + 8 <= n; j += 8) {
        columns(8, a + j, lda, y + j, m, alpha, beta);
    }
    for (; j + 4 <= n; j += 4) {
        columns(4, a + j, lda, y + j, m, alpha, beta);
    }
    for (; j < n; j++) {
        columns(1, a + j, lda, y + j, m, alpha, beta);
    }
}
