/* Matrix times matrix, one dot product at a time: this order of the sums is the specification. */
#include "ag_kernels.h"

#include <stddef.h>

/* A backend may apply alpha and beta differently; ref always multiplies by both, except that beta == 0 reads
 * nothing. */
static inline void finish(float *c, ptrdiff_t at, int32_t column, float sum, float alpha, float beta,
                          const ag_epilogue *epilogue) {
    c[at] = beta == 0.0f ? ag_finished(epilogue, alpha * sum, column, at) : alpha * sum + beta * c[at];
}

/* The sum over ascending p of a[i * a_row + p * a_step] * b[j * b_row + p * b_step] for each element. */
static inline void product(const float *a, ptrdiff_t a_row, ptrdiff_t a_step, const float *b, ptrdiff_t b_row,
                           ptrdiff_t b_step, float *c, int32_t ldc, int32_t m, int32_t n, int32_t k,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            const float *left = a + i * a_row, *right = b + j * b_row;
            float sum = 0.0f;
            for (int32_t p = 0; p < k; p++) {
                sum += left[p * a_step] * right[p * b_step];
            }
            finish(c, (ptrdiff_t)i * ldc + j, j, sum, alpha, beta, epilogue);
        }
    }
}

void ag_gemm_nn_f32_ref(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                        int32_t m, int32_t n, int32_t k, float alpha, float beta,
                        const ag_epilogue *epilogue) {
    product(a, lda, 1, b, 1, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
}

void ag_gemm_nt_f32_ref(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                        int32_t m, int32_t n, int32_t k, float alpha, float beta,
                        const ag_epilogue *epilogue) {
    product(a, lda, 1, b, ldb, 1, c, ldc, m, n, k, alpha, beta, epilogue);
}

void ag_gemm_tn_f32_ref(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                        int32_t m, int32_t n, int32_t k, float alpha, float beta,
                        const ag_epilogue *epilogue) {
    product(a, 1, lda, b, 1, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
}

void ag_gemm_tt_f32_ref(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                        int32_t m, int32_t n, int32_t k, float alpha, float beta,
                        const ag_epilogue *epilogue) {
    product(a, 1, lda, b, ldb, 1, c, ldc, m, n, k, alpha, beta, epilogue);
}
