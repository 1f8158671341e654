/* Average pooling in tiles of channels. */
#include "ag_kernels.h"
#include "channel_tile.h"
#include "tiles/avg_pool2d.h"

void ag_avg_pool2d_f32_armv7em(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    ag_avg_pool2d_tiled(x, y, n, shape);
}

void ag_avg_pool2d_dx_f32_armv7em(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape) {
    ag_avg_pool2d_dx_tiled(dy, dx, n, shape);
}
