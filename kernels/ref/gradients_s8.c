/* Gradients of convolutions and depthwise convolutions with one quantised operand. */
#include "ag_kernels.h"

typedef int8_t element;
#include "gradients.h"

void ag_conv2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                             const ag_conv2d_shape *shape) {
    const int32_t channels = shape->c / shape->groups;
    (void)scratch;
    input_gradient(dy, w, dx, n, shape->kh * shape->kw * channels, channels, channels, shape);
}

void ag_depthwise2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                  const ag_conv2d_shape *shape) {
    (void)scratch;
    input_gradient(dy, w, dx, n, 1, 1, shape->c, shape);
}

void ag_conv2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                             void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    const int32_t channels = shape->c / shape->groups, filter = shape->kh * shape->kw * channels;
    (void)scratch;
    weight_gradient(x, dy, dw, n, (int8_t)x_zero, filter, channels, channels, shape, alpha, beta);
}

void ag_depthwise2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                  void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    (void)scratch;
    weight_gradient(x, dy, dw, n, (int8_t)x_zero, 1, 1, shape->c, shape, alpha, beta);
}
