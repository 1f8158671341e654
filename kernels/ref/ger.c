/* The outer product of two vectors, added to a matrix: a weight update from one sample. */
#include "ag_kernels.h"

#include <stddef.h>

void ag_ger_f32_ref(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                    float beta) {
    for (int32_t i = 0; i < m; i++) {
        float *row = a + (ptrdiff_t)i * lda;
        const float ax = alpha * x[i];
        /* one loop per case: at -O2 compilers leave the condition in the loop */
        if (beta == 0.0f) {
            for (int32_t j = 0; j < n; j++) {
                row[j] = ax * y[j];
            }
        } else if (beta == 1.0f) {
            for (int32_t j = 0; j < n; j++) {
                row[j] = ax * y[j] + row[j];
            }
        } else {
            for (int32_t j = 0; j < n; j++) {
                row[j] = ax * y[j] + beta * row[j];
            }
        }
    }
}
