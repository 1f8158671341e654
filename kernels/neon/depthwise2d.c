/* Depthwise convolution by blocks of channels. */
#include "ag_kernels.h"
#include "lanes_size.h"
#include "tiles/depthwise2d.h"

void ag_depthwise2d_f32_neon(const float *x, const float *w, float *y, int32_t n,
                             const ag_conv2d_shape *shape) {
    ag_depthwise2d_by_lanes(x, w, y, n, shape);
}

void ag_depthwise2d_dx_f32_neon(const float *dy, const float *w, float *dx, int32_t n,
                                const ag_conv2d_shape *shape) {
    ag_depthwise2d_dx_by_lanes(dy, w, dx, n, shape);
}

void ag_depthwise2d_dw_f32_neon(const float *x, const float *dy, float *dw, int32_t n,
                                const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_depthwise2d_dw_by_lanes(x, dy, dw, n, shape, alpha, beta);
}
