/* Products of packed matrices by CMSIS-DSP; the conditions in kernels.toml exclude every other call. */
#include "ag_kernels.h"
#include "cmsis_dsp.h"

/* CMSIS-DSP does not change its operands, but its struct has no const. */
static arm_matrix_instance_f32 matrix(const float *data, int32_t rows, int32_t columns) {
    arm_matrix_instance_f32 m;
    m.numRows = (uint16_t)rows;
    m.numCols = (uint16_t)columns;
    m.pData = (float32_t *)(uintptr_t)data;
    return m;
}

void ag_gemm_nn_f32_cmsis_dsp(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                              int32_t m, int32_t n, int32_t k, float alpha, float beta,
                              const ag_epilogue *epilogue) {
    const arm_matrix_instance_f32 left = matrix(a, m, k), right = matrix(b, k, n);
    arm_matrix_instance_f32 result = matrix(c, m, n);
    (void)lda;
    (void)ldb;
    (void)ldc;
    (void)alpha;
    (void)beta;
    (void)arm_mat_mult_f32(&left, &right, &result);
    ag_finish(epilogue, c, n, m, n);
}

void ag_gemv_f32_cmsis_dsp(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    const arm_matrix_instance_f32 left = matrix(a, m, n);
    (void)lda;
    (void)alpha;
    (void)beta;
    arm_mat_vec_mult_f32(&left, x, y);
    ag_finish(epilogue, y, m, 1, m);
}
