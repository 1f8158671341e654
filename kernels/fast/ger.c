/* The outer product added to a matrix, four rows and four columns at a time. */
#include "ag_kernels.h"

#include <stddef.h>

/* Four adjacent columns of a row; all are read before any is written. */
static inline void add_four(float *row, float ax, const float y[4]) {
    const float a0 = row[0], a1 = row[1], a2 = row[2], a3 = row[3];
    row[0] = a0 + ax * y[0];
    row[1] = a1 + ax * y[1];
    row[2] = a2 + ax * y[2];
    row[3] = a3 + ax * y[3];
}

void ag_ger_f32_fast(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    int32_t i = 0;
    for (; beta == 1.0f && i + 4 <= m; i += 4) {
        float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda;
        const float x0 = alpha * x[i], x1 = alpha * x[i + 1], x2 = alpha * x[i + 2], x3 = alpha * x[i + 3];
        int32_t j = 0;
        for (; j + 4 <= n; j += 4, r0 += 4, r1 += 4, r2 += 4, r3 += 4) {
            const float four[4] = {y[j], y[j + 1], y[j + 2], y[j + 3]};
            add_four(r0, x0, four);
            add_four(r1, x1, four);
            add_four(r2, x2, four);
            add_four(r3, x3, four);
        }
        for (; j < n; j++) {
            *r0++ += x0 * y[j];
            *r1++ += x1 * y[j];
            *r2++ += x2 * y[j];
            *r3++ += x3 * y[j];
        }
    }
    for (; i < m; i++) {
        ag_axpby_f32_fast(y, a + (ptrdiff_t)i * lda, n, alpha * x[i], beta);
    }
}
