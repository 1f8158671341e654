/* What a pooled convolution and its gradients share: which taps of one of the convolution's windows lie
 * inside x. */
#ifndef AG_TILES_CONV2D_POOL_WINDOWS_H
#define AG_TILES_CONV2D_POOL_WINDOWS_H

#include "ag_shapes.h"
#include "tiles/tap_ranges.h"

#include <stdbool.h>
#include <stddef.h>

/* The taps inside x, from `row` and `column` on; the first of them is at `at` in the image. */
typedef struct {
    ptrdiff_t at;
    int32_t row, rows, column, columns;
} ag_inside;

static inline ag_inside ag_inside_of(int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    const ag_span down = ag_span_from(p, s->oh, s->stride_h, s->pad_top, s->kh, s->dilation_h, s->h);
    const ag_span across = ag_span_from(q, s->ow, s->stride_w, s->pad_left, s->kw, s->dilation_w, s->w);
    ag_inside in;
    in.row = down.first;
    in.rows = down.last - down.first;
    in.column = across.first;
    in.columns = across.last - across.first;
    in.at = (ptrdiff_t)(p * s->stride_h - s->pad_top + in.row * s->dilation_h) * s->x_h +
            (ptrdiff_t)(q * s->stride_w - s->pad_left + in.column * s->dilation_w) * s->x_w;
    return in;
}

/* Whether all windows of the convolution that the pooling's windows with this number have as elements lie
 * inside x, along one axis. */
static inline bool ag_pool_inside(int32_t number, int32_t apart, int32_t elements, int32_t stride,
                                  int32_t pad, int32_t reach, int32_t windows, int32_t extent) {
    const int32_t first = number * apart, last = first + elements - 1;
    return first * stride >= pad && last < windows && last * stride - pad + reach < extent;
}

static inline bool ag_pool_inside_h(int32_t p, const ag_conv2d_pool_shape *s) {
    return ag_pool_inside(p, s->pool_stride_h, s->pool_h, s->stride_h, s->pad_top,
                          (s->kh - 1) * s->dilation_h, s->oh, s->h);
}

static inline bool ag_pool_inside_w(int32_t q, const ag_conv2d_pool_shape *s) {
    return ag_pool_inside(q, s->pool_stride_w, s->pool_w, s->stride_w, s->pad_left,
                          (s->kw - 1) * s->dilation_w, s->ow, s->w);
}

#endif
