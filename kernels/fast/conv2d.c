/* Convolution with the tiled loops of tiles/conv2d.h. */
#include "ag_kernels.h"
#include "tile_sizes.h"
#include "tiles/conv2d.h"

void ag_conv2d_f32_fast(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape) {
    ag_conv2d_tiled(x, w, y, n, shape);
}
