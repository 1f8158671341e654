/* Depthwise convolution in tiles of channels. */
#include "ag_kernels.h"
#include "channel_tile.h"
#include "tiles/depthwise2d.h"

void ag_depthwise2d_f32_armv7em(const float *x, const float *w, float *y, int32_t n,
                                const ag_conv2d_shape *shape) {
    ag_depthwise2d_tiled(x, w, y, n, shape);
}

void ag_depthwise2d_dx_f32_armv7em(const float *dy, const float *w, float *dx, int32_t n,
                                   const ag_conv2d_shape *shape) {
    ag_depthwise2d_dx_tiled(dy, w, dx, n, shape);
}

void ag_depthwise2d_dw_f32_armv7em(const float *x, const float *dy, float *dw, int32_t n,
                                   const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_depthwise2d_dw_tiled(x, dy, dw, n, shape, alpha, beta);
}
