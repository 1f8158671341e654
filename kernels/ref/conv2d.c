/* Convolution and depthwise convolution over channel-last images: this order of the sums is the
 * specification. */
typedef float ag_weight, ag_element;
#include "conv2d_gradients.h"

/* The sum over one window for one output channel: rows, columns, channels ascending; padding is skipped. */
AG_INLINE float window_sum(const float *x, const float *w, int32_t top, int32_t left, int32_t inputs,
                           ptrdiff_t tap, const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++, w += tap) {
            const int32_t column = left + j * s->dilation_w;
            if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
                continue;
            }
            const float *pixel = x + (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
            for (int32_t k = 0; k < inputs; k++) {
                sum += pixel[(ptrdiff_t)k * s->x_c] * w[k];
            }
        }
    }
    return sum;
}

AG_INLINE void convolution(const float *x, const float *w, float *y, int32_t n, int32_t inputs,
                           ptrdiff_t filter, ptrdiff_t tap, const ag_conv2d_shape *s,
                           const ag_epilogue *epilogue) {
    const int32_t outputs = s->o / s->groups;
    const float *const first = y;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t o = 0; o < s->o; o++) {
                    const float *group = x + (ptrdiff_t)(o / outputs) * inputs * s->x_c;
                    const float sum = window_sum(group, w + o * filter, top, left, inputs, tap, s);
                    y[o] = ag_finished(epilogue, sum, o, y + o - first);
                }
            }
        }
    }
}

void ag_conv2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                       const ag_epilogue *epilogue) {
    const int32_t inputs = shape->c / shape->groups;
    convolution(x, w, y, n, inputs, filter_of(shape), inputs, shape, epilogue);
}

void ag_conv2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                          const ag_conv2d_shape *shape) {
    const int32_t inputs = shape->c / shape->groups;
    input_gradient(dy, w, dx, n, inputs, filter_of(shape), inputs, shape);
}

void ag_conv2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    const int32_t inputs = shape->c / shape->groups;
    weight_gradient(x, dy, dw, n, 0.0f, inputs, filter_of(shape), inputs, shape, alpha, beta);
}

void ag_depthwise2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                            const ag_epilogue *epilogue) {
    convolution(x, w, y, n, 1, 1, shape->c, shape, epilogue);
}

void ag_depthwise2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *shape) {
    input_gradient(dy, w, dx, n, 1, 1, shape->c, shape);
}

void ag_depthwise2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    weight_gradient(x, dy, dw, n, 0.0f, 1, 1, shape->c, shape, alpha, beta);
}
