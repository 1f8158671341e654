/* Convolution over channel-last images, and depthwise convolution, of a window for every channel: this order
 * of the sums is the specification. */
#include <stdint.h>

typedef float operand;

static inline float real(operand x, int32_t zero) {
    (void)zero;
    return x;
}

#include "convolution.h"

/* The sum over one window for one output channel: rows, columns, channels ascending; padding is skipped. */
INLINED float window_sum(const float *x, const float *w, int32_t top, int32_t left, channels_of c,
                         const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++, w += c.tap) {
            const ptrdiff_t at = pixel_at(top + i * s->dilation_h, left + j * s->dilation_w, s);
            if (at < 0) {
                continue;
            }
            for (int32_t k = 0; k < c.inputs; k++) {
                sum += x[at + (ptrdiff_t)k * s->x_c] * w[k];
            }
        }
    }
    return sum;
}

INLINED void convolve(const float *x, const float *w, float *y, int32_t n, channels_of c,
                      const ag_conv2d_shape *s, const ag_epilogue *epilogue) {
    const float *const first = y;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t o = 0; o < s->o; o++) {
                    const float *group = x + (ptrdiff_t)(o / c.outputs) * c.inputs * s->x_c;
                    const float sum = window_sum(group, w + (ptrdiff_t)o * c.filter, top, left, c, s);
                    y[o] = ag_finished(epilogue, sum, o, y + o - first);
                }
            }
        }
    }
}

void ag_conv2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                       const ag_epilogue *epilogue) {
    convolve(x, w, y, n, of_groups(shape), shape, epilogue);
}

void ag_conv2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                          const ag_conv2d_shape *shape) {
    input_gradient(dy, w, dx, n, of_groups(shape), shape);
}

void ag_conv2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    weight_gradient(x, dy, dw, n, 0, of_groups(shape), shape, alpha, beta);
}

void ag_depthwise2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                            const ag_epilogue *epilogue) {
    convolve(x, w, y, n, of_depthwise(shape), shape, epilogue);
}

void ag_depthwise2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *shape) {
    input_gradient(dy, w, dx, n, of_depthwise(shape), shape);
}

void ag_depthwise2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    weight_gradient(x, dy, dw, n, 0, of_depthwise(shape), shape, alpha, beta);
}
