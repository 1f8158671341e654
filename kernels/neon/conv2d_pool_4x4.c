/* Convolution fused with max pooling (tiles/conv2d_pool.h) with the 4 x 4 micro-kernels. */
#include "ag_kernels.h"
#include "tile_sizes_4x4.h"
#include "tiles/conv2d_pool.h"

void ag_conv2d_pool_f32_small_neon(const float *x, const float *w, const float *bias, float *y,
                                   uint8_t *index, int32_t n, const ag_conv2d_pool_shape *shape) {
    ag_conv2d_pool_tiled(x, w, bias, y, index, n, shape);
}
