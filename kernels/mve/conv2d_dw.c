/* Weight gradient of a convolution (tiles/conv2d_dw.h). */
#include "ag_kernels.h"
#include "tile_sizes.h"
#include "tiles/conv2d_dw.h"

void ag_conv2d_dw_f32_mve(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    ag_conv2d_dw_tiled(x, dy, dw, n, shape, alpha, beta);
}
