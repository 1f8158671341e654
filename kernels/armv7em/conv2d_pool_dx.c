/* Input gradient of a pooled convolution. */
#include "ag_kernels.h"
#include "axpy_rows.h"
#include "tiles/conv2d_pool_dx.h"

void ag_conv2d_pool_dx_f32_armv7em(const float *dy, const uint8_t *index, const float *w, float *dx,
                                   int32_t n, const ag_conv2d_pool_shape *shape) {
    ag_conv2d_pool_dx_by_rows(dy, index, w, dx, n, shape);
}
