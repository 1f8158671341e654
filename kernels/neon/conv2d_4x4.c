/* Convolution with the tiled loops of tiles/conv2d.h with the 4 x 4 micro-kernels. */
#include "ag_kernels.h"
#include "tile_sizes_4x4.h"
#include "tiles/conv2d.h"

void ag_conv2d_f32_small_neon(const float *x, const float *w, float *y, int32_t n,
                              const ag_conv2d_shape *shape) {
    ag_conv2d_tiled(x, w, y, n, shape);
}
