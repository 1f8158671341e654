/* Windows of convolutions over channel-last images. Weight (i, j, k) of a filter is (i * kw + j) * tap + k
 * elements after the first one. */
#ifndef AG_WINDOWS_H
#define AG_WINDOWS_H

#include "ag_shapes.h"

/* Some taps along an axis: first ... end - 1. */
typedef struct {
    int32_t first, end;
} ag_taps;

/* The taps inside the extent, from `count` taps that are `dilation` apart from `start` on. */
static inline ag_taps ag_taps_inside(int32_t start, int32_t count, int32_t dilation, int32_t extent) {
    const int32_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int32_t end = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
    const ag_taps inside = {first, end < count ? end : count};
    return inside;
}

/* A window whose corner is at row `top` and column `left`, and its taps inside the image. */
typedef struct {
    int32_t top, left;
    ag_taps rows, columns;
} ag_window;

/* The window of result (p, q). */
static inline ag_window ag_window_of(int32_t p, int32_t q, const ag_conv2d_shape *s) {
    const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
    const ag_window window = {top, left, ag_taps_inside(top, s->kh, s->dilation_h, s->h),
                              ag_taps_inside(left, s->kw, s->dilation_w, s->w)};
    return window;
}

/* Element (i, j) of a window. */
static inline ptrdiff_t ag_tap_at(const ag_window *v, int32_t i, int32_t j, const ag_conv2d_shape *s) {
    return (ptrdiff_t)(v->top + i * s->dilation_h) * s->x_h +
           (ptrdiff_t)(v->left + j * s->dilation_w) * s->x_w;
}

/* The sum of `channels` channels of a window: rows, columns, channels ascending; padding is skipped. */
static inline float ag_window_sum(const float *x, const float *w, const ag_window *v, int32_t channels,
                                  int32_t tap, const ag_conv2d_shape *s) {
    const int32_t step = channels == 1 ? 1 : s->x_c;
    /* A row without gaps is added up as one pixel. */
    const int32_t joined = tap == channels && s->dilation_w == 1 && s->x_w == channels && step == 1;
    const int32_t columns = v->columns.end - v->columns.first;
    const int32_t length = joined ? columns * channels : channels;
    float sum = 0.0f;
    for (int32_t i = v->rows.first; i < v->rows.end; i++) {
        const float *pixel = x + ag_tap_at(v, i, v->columns.first, s);
        const float *weight = w + (ptrdiff_t)(i * s->kw + v->columns.first) * tap;
        for (int32_t j = joined ? 1 : columns; j > 0; j--) {
            for (int32_t k = 0; k < length; k++) {
                sum += pixel[(ptrdiff_t)k * step] * weight[k];
            }
            pixel += (ptrdiff_t)s->dilation_w * s->x_w;
            weight += tap;
        }
    }
    return sum;
}

/* An image of zeros. */
static inline void ag_clear_image(float *x, int32_t h, int32_t w, int32_t c, int32_t x_h, int32_t x_w,
                                  int32_t x_c) {
    for (int32_t i = 0; i < h; i++) {
        for (int32_t j = 0; j < w; j++) {
            for (int32_t k = 0; k < c; k++) {
                x[(ptrdiff_t)i * x_h + (ptrdiff_t)j * x_w + (ptrdiff_t)k * x_c] = 0.0f;
            }
        }
    }
}

#endif
