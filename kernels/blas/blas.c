/* The gemm family by CBLAS. Sums longer than the library's k blocks (some hundred products) are added to C
 * block by block. */
#include "ag_kernels.h"

#include <cblas.h>

#ifdef OPENBLAS_VERSION
/* A training step is short: waking other threads would take longer than the work. */
__attribute__((constructor)) static void use_one_thread(void) {
    openblas_set_num_threads(1);
}
#endif

static void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, const float *a, int32_t lda, const float *b,
                 int32_t ldb, float *c, int32_t ldc, int32_t m, int32_t n, int32_t k, float alpha,
                 float beta) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void ag_gemm_nn_f32_blas(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    gemm(CblasNoTrans, CblasNoTrans, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    ag_finish(epilogue, c, ldc, m, n);
}

void ag_gemm_nt_f32_blas(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    gemm(CblasNoTrans, CblasTrans, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    ag_finish(epilogue, c, ldc, m, n);
}

void ag_gemm_tn_f32_blas(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    gemm(CblasTrans, CblasNoTrans, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    ag_finish(epilogue, c, ldc, m, n);
}

void ag_gemm_tt_f32_blas(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    gemm(CblasTrans, CblasTrans, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    ag_finish(epilogue, c, ldc, m, n);
}

void ag_gemv_f32_blas(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                      float alpha, float beta, const ag_epilogue *epilogue) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, m, n, alpha, a, lda, x, 1, beta, y, 1);
    ag_finish(epilogue, y, m, 1, m);
}

void ag_gemv_t_f32_blas(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                        float alpha, float beta, const ag_epilogue *epilogue) {
    cblas_sgemv(CblasRowMajor, CblasTrans, m, n, alpha, a, lda, x, 1, beta, y, 1);
    ag_finish(epilogue, y, n, 1, n);
}

void ag_ger_f32_blas(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    (void)beta; /* 1: kernels.toml */
    cblas_sger(CblasRowMajor, m, n, alpha, x, 1, y, 1, a, lda);
}
