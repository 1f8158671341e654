/* The gemm family (tiles/gemm.h) with the 4 x 4 micro-kernels. */
#include "gemm_4x4.h"
#include "tile_sizes_4x4.h"
#include "tiles/gemm.h"

void ag_gemm_nn_4x4_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    ag_gemm_tiled(AG_MICROKERNEL(nn), (ag_operand){a, lda, 1}, (ag_operand){b, 1, ldb}, c, ldc, m, n, k,
                  alpha, beta);
}

void ag_gemm_nt_4x4_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    ag_gemm_tiled(AG_MICROKERNEL(nt), (ag_operand){a, lda, 1}, (ag_operand){b, ldb, 1}, c, ldc, m, n, k,
                  alpha, beta);
}

void ag_gemm_tn_4x4_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    ag_gemm_tiled(AG_MICROKERNEL(tn), (ag_operand){a, 1, lda}, (ag_operand){b, 1, ldb}, c, ldc, m, n, k,
                  alpha, beta);
}
