/* Matrix times vector: four rows (gemv) or eight columns (gemv_t) at a time. */
#include "ag_kernels.h"

#include <stddef.h>

enum { COLUMNS = 8 };

static inline float scale_add(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

void ag_gemv_f32_fast(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                      float alpha, float beta) {
    int32_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda, *px = x;
        float y0 = 0.0f, y1 = 0.0f, y2 = 0.0f, y3 = 0.0f;
        int32_t remaining = n;
        for (; remaining >= 4; remaining -= 4, r0 += 4, r1 += 4, r2 += 4, r3 += 4, px += 4) {
            for (int32_t q = 0; q < 4; q++) {
                y0 += r0[q] * px[q];
                y1 += r1[q] * px[q];
                y2 += r2[q] * px[q];
                y3 += r3[q] * px[q];
            }
        }
        for (; remaining > 0; remaining--) {
            const float xj = *px++;
            y0 += *r0++ * xj;
            y1 += *r1++ * xj;
            y2 += *r2++ * xj;
            y3 += *r3++ * xj;
        }
        y[i] = scale_add(y0, alpha, beta, &y[i]);
        y[i + 1] = scale_add(y1, alpha, beta, &y[i + 1]);
        y[i + 2] = scale_add(y2, alpha, beta, &y[i + 2]);
        y[i + 3] = scale_add(y3, alpha, beta, &y[i + 3]);
    }
    for (; i < m; i++) {
        const float *row = a + (ptrdiff_t)i * lda;
        float sum = 0.0f;
        for (int32_t j = 0; j < n; j++) {
            sum += row[j] * x[j];
        }
        y[i] = scale_add(sum, alpha, beta, &y[i]);
    }
}

void ag_gemv_t_f32_fast(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    int32_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        const float *row = a + j;
        float sums[COLUMNS] = {0.0f};
        for (int32_t i = 0; i < m; i++, row += lda) {
            const float xi = x[i];
            for (int32_t q = 0; q < COLUMNS; q++) {
                sums[q] += row[q] * xi;
            }
        }
        for (int32_t q = 0; q < COLUMNS; q++) {
            y[j + q] = scale_add(sums[q], alpha, beta, &y[j + q]);
        }
    }
    for (; j < n; j++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < m; i++) {
            sum += a[(ptrdiff_t)i * lda + j] * x[i];
        }
        y[j] = scale_add(sum, alpha, beta, &y[j]);
    }
}
