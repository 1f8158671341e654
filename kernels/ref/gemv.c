/* Matrix times vector, one dot product at a time: this order of the sums is the specification. */
#include "ag_kernels.h"

#include <stddef.h>

void ag_gemv_f32_ref(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n, float alpha,
                     float beta, const ag_epilogue *epilogue) {
    for (int32_t i = 0; i < m; i++) {
        const float *row = a + (ptrdiff_t)i * lda;
        float sum = 0.0f;
        for (int32_t j = 0; j < n; j++) {
            sum += row[j] * x[j];
        }
        y[i] = beta == 0.0f ? ag_finished(epilogue, alpha * sum, i, i) : alpha * sum + beta * y[i];
    }
}

void ag_gemv_t_f32_ref(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                       float alpha, float beta, const ag_epilogue *epilogue) {
    for (int32_t j = 0; j < n; j++) {
        const float *column = a + j;
        float sum = 0.0f;
        for (int32_t i = 0; i < m; i++) {
            sum += column[(ptrdiff_t)i * lda] * x[i];
        }
        y[j] = beta == 0.0f ? ag_finished(epilogue, alpha * sum, j, j) : alpha * sum + beta * y[j];
    }
}
