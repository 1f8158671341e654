/* Convolution fused with max pooling (tiles/conv2d_pool.h). */
#include "ag_kernels.h"
#include "tile_sizes.h"
#include "tiles/conv2d_pool.h"

void ag_conv2d_pool_f32_neon(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                             int32_t n, const ag_conv2d_pool_shape *shape) {
    ag_conv2d_pool_tiled(x, w, bias, y, index, n, shape);
}
