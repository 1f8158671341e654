/* What a pooled convolution and its gradients share: the convolution that is pooled, and which taps of one of
 * its windows lie inside x. */
#ifndef AG_TILES_POOLED_H
#define AG_TILES_POOLED_H

#include "ag_shapes.h"
#include "tiles/spans.h"

#include <stdbool.h>
#include <stddef.h>

static inline ag_conv2d_shape ag_pooled_conv2d(const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape conv = {s->h,       s->w,        s->c,          s->oh,         s->ow,
                                  s->o,       s->kh,       s->kw,         s->stride_h,   s->stride_w,
                                  s->pad_top, s->pad_left, s->dilation_h, s->dilation_w, 1,
                                  s->x_n,     s->x_h,      s->x_w,        s->x_c,        s->o};
    return conv;
}

/* The taps inside x, from `row` and `column` on; the first of them is at `at` in the image. */
typedef struct {
    ptrdiff_t at;
    int32_t row, rows, column, columns;
} ag_inside;

static inline ag_inside ag_inside_of(int32_t p, int32_t q, const ag_conv2d_shape *s) {
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

static inline bool ag_alike(const ag_inside *a, const ag_inside *b) {
    return a->row == b->row && a->rows == b->rows && a->column == b->column && a->columns == b->columns;
}

static inline bool ag_all_inside(const ag_inside *in, const ag_conv2d_shape *s) {
    return in->rows == s->kh && in->columns == s->kw;
}

#endif
