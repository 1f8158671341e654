/* Gradients of convolutions and depthwise convolutions of which one operand is quantised. */
#include <stdint.h>

typedef int8_t operand;

static inline float real(operand q, int32_t zero) {
    return (float)(q - zero);
}

#include "convolution.h"

void ag_conv2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                             const ag_conv2d_shape *shape) {
    (void)scratch;
    input_gradient(dy, w, dx, n, of_groups(shape), shape);
}

void ag_depthwise2d_dx_f32_s8_ref(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                  const ag_conv2d_shape *shape) {
    (void)scratch;
    input_gradient(dy, w, dx, n, of_depthwise(shape), shape);
}

void ag_conv2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                             void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    (void)scratch;
    weight_gradient(x, dy, dw, n, x_zero, of_groups(shape), shape, alpha, beta);
}

void ag_depthwise2d_dw_s8_f32_ref(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                  void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    (void)scratch;
    weight_gradient(x, dy, dw, n, x_zero, of_depthwise(shape), shape, alpha, beta);
}
