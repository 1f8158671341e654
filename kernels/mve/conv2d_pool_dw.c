/* Weight gradient of a pooled convolution. */
#include "ag_kernels.h"
#include "axpy_rows.h"
#include "tiles/conv2d_pool_dw.h"

void ag_conv2d_pool_dw_f32_mve(const float *x, const float *dy, const uint8_t *index, float *dw, int32_t n,
                               const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    ag_conv2d_pool_dw_by_rows(x, dy, index, dw, n, shape, alpha, beta);
}
