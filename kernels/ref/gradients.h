/* Gradients of convolutions for weights and images of `element`, a type that the including file defines:
 * float, or int8_t, from which a zero is subtracted. Weight (o, i, j, k) is o * filter + (i * kw + j) * tap +
 * k elements after the first one. */
#ifndef AG_GRADIENTS_H
#define AG_GRADIENTS_H

#include "windows.h"

/* Adds dy * w to a window. */
static inline void window_add(float *dx, const element *w, float dy, const ag_window *v, int32_t channels,
                              int32_t tap, const ag_conv2d_shape *s) {
    for (int32_t i = v->rows.first; i < v->rows.end; i++) {
        for (int32_t j = v->columns.first; j < v->columns.end; j++) {
            float *pixel = dx + ag_tap_at(v, i, j, s);
            const element *weight = w + (ptrdiff_t)(i * s->kw + j) * tap;
            for (int32_t k = 0; k < channels; k++) {
                pixel[(ptrdiff_t)k * s->x_c] += dy * (float)weight[k];
            }
        }
    }
}

static inline void input_gradient(const float *dy, const element *w, float *dx, int32_t n, int32_t filter,
                                  int32_t channels, int32_t tap, const ag_conv2d_shape *s) {
    const int32_t outputs = s->o / s->groups;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        ag_clear_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const ag_window window = ag_window_of(p, q, s);
                for (int32_t o = 0; o < s->o; o++) {
                    float *group = dx + (ptrdiff_t)(o / outputs) * channels * s->x_c;
                    window_add(group, w + (ptrdiff_t)o * filter, dy[o], &window, channels, tap, s);
                }
            }
        }
    }
}

/* The sum over all windows, ascending, of dy times the element (row, column) away from the window's corner;
 * padding is skipped. */
static inline float weight_sum(const element *x, const float *dy, int32_t row, int32_t column, int32_t n,
                               element zero, const ag_conv2d_shape *s) {
    const ag_taps rows = ag_taps_inside(row - s->pad_top, s->oh, s->stride_h, s->h);
    const ag_taps columns = ag_taps_inside(column - s->pad_left, s->ow, s->stride_w, s->w);
    const int32_t left = columns.first * s->stride_w - s->pad_left + column;
    float sum = 0.0f;
    for (int32_t b = 0; b < n; b++, x += s->x_n, dy += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t p = rows.first; p < rows.end; p++) {
            const int32_t top = p * s->stride_h - s->pad_top + row;
            const element *pixel = x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
            const float *result = dy + (ptrdiff_t)(p * s->ow + columns.first) * s->ldy;
            for (int32_t q = columns.first; q < columns.end; q++) {
                sum += (float)(*pixel - zero) * *result;
                pixel += (ptrdiff_t)s->stride_w * s->x_w;
                result += s->ldy;
            }
        }
    }
    return sum;
}

static inline void weight_gradient(const element *x, const float *dy, float *dw, int32_t n, element zero,
                                   int32_t filter, int32_t channels, int32_t tap, const ag_conv2d_shape *s,
                                   float alpha, float beta) {
    const int32_t outputs = s->o / s->groups;
    for (int32_t o = 0; o < s->o; o++) {
        const element *group = x + (ptrdiff_t)(o / outputs) * channels * s->x_c;
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t j = 0; j < s->kw; j++) {
                float *w = dw + (ptrdiff_t)o * filter + (ptrdiff_t)(i * s->kw + j) * tap;
                for (int32_t k = 0; k < channels; k++, w++) {
                    const float sum = weight_sum(group + (ptrdiff_t)k * s->x_c, dy + o, i * s->dilation_h,
                                                 j * s->dilation_w, n, zero, s);
                    *w = beta == 0.0f ? alpha * sum : alpha * sum + beta * *w;
                }
            }
        }
    }
}

#endif
