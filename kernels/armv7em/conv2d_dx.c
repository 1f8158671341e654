/* Input gradient of a convolution (tiles/conv2d_dx.h). */
#include "ag_kernels.h"
#include "tile_sizes.h"
#include "tiles/conv2d_dx.h"

void ag_conv2d_dx_f32_armv7em(const float *dy, const float *w, float *dx, int32_t n,
                              const ag_conv2d_shape *shape) {
    ag_conv2d_dx_tiled(dy, w, dx, n, shape);
}
