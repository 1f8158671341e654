/* Gradients of convolutions over channel-last images: this order of the sums is the specification. The file
 * that includes this one defines `operand`, the type of w in the gradient of x, and of x in that of w, and
 * real(q, zero), the number that one represents.
 *
 * Functions that are inlined with their numbers of channels are as fast as if they were written for each. */
#ifndef AG_REF_CONVOLUTION_H
#define AG_REF_CONVOLUTION_H

#include "ag_kernels.h"

#include <stddef.h>

#if defined __GNUC__
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

/* Channels of x and of y in a group; weight (o, i, j, k) is o * filter + (i * kw + j) * tap + k elements
 * after the first one. */
typedef struct {
    int32_t inputs, outputs, filter, tap;
} channels_of;

INLINED channels_of of_groups(const ag_conv2d_shape *s) {
    const int32_t inputs = s->c / s->groups;
    const channels_of c = {inputs, s->o / s->groups, s->kh * s->kw * inputs, inputs};
    return c;
}

INLINED channels_of of_depthwise(const ag_conv2d_shape *s) {
    const channels_of c = {1, 1, 1, s->c};
    return c;
}

/* Offset in an image of pixel (row, column), channel 0; -1 where it is padding. */
INLINED ptrdiff_t pixel_at(int32_t row, int32_t column, const ag_conv2d_shape *s) {
    if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
        return -1;
    }
    return (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
}

static inline void clear_image(float *x, const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->h; i++) {
        for (int32_t j = 0; j < s->w; j++) {
            for (int32_t k = 0; k < s->c; k++) {
                x[pixel_at(i, j, s) + (ptrdiff_t)k * s->x_c] = 0.0f;
            }
        }
    }
}

/* Adds dy * w to the window of one output channel. */
INLINED void window_add(float *dx, const operand *w, float dy, int32_t top, int32_t left, channels_of c,
                        const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++, w += c.tap) {
            const ptrdiff_t at = pixel_at(top + i * s->dilation_h, left + j * s->dilation_w, s);
            if (at < 0) {
                continue;
            }
            for (int32_t k = 0; k < c.inputs; k++) {
                dx[at + (ptrdiff_t)k * s->x_c] += dy * real(w[k], 0);
            }
        }
    }
}

INLINED void input_gradient(const float *dy, const operand *w, float *dx, int32_t n, channels_of c,
                            const ag_conv2d_shape *s) {
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        clear_image(dx, s);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t o = 0; o < s->o; o++) {
                    float *group = dx + (ptrdiff_t)(o / c.outputs) * c.inputs * s->x_c;
                    window_add(group, w + (ptrdiff_t)o * c.filter, dy[o], top, left, c, s);
                }
            }
        }
    }
}

/* The sum over all windows, ascending, of dy times the element (row, column) away from the window's corner.
 */
INLINED float weight_sum(const operand *x, const float *dy, int32_t row, int32_t column, int32_t n,
                         int32_t x_zero, const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const ptrdiff_t at =
                    pixel_at(p * s->stride_h - s->pad_top + row, q * s->stride_w - s->pad_left + column, s);
                if (at >= 0) {
                    sum += real(x[at], x_zero) * *dy;
                }
            }
        }
    }
    return sum;
}

INLINED void weight_gradient(const operand *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                             channels_of c, const ag_conv2d_shape *s, float alpha, float beta) {
    for (int32_t o = 0; o < s->o; o++) {
        const operand *group = x + (ptrdiff_t)(o / c.outputs) * c.inputs * s->x_c;
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t j = 0; j < s->kw; j++) {
                float *w = dw + (ptrdiff_t)o * c.filter + (ptrdiff_t)(i * s->kw + j) * c.tap;
                for (int32_t k = 0; k < c.inputs; k++, w++) {
                    const float sum = weight_sum(group + (ptrdiff_t)k * s->x_c, dy + o, i * s->dilation_h,
                                                 j * s->dilation_w, n, x_zero, s);
                    *w = beta == 0.0f ? alpha * sum : alpha * sum + beta * *w;
                }
            }
        }
    }
}

#endif
