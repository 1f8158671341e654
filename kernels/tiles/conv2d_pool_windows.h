/* Shared by conv2d_pool.c and its gradients: the valid taps of one window of the convolution, and which
 * pooling windows are interior.
 *
 *     x (h x w)                    one pooling window
 *     +-------------+              +---+---+
 *     | +-----+     |   windows    | 0 | 1 |    each element is the convolution at one window of x;
 *     | |   +-+---+ |   0 and 3    +---+---+    index = 0 .. 3: the element that is the maximum
 *     | +---+-+   | |              | 2 | 3 |
 *     |     +-----+ |              +---+---+
 *     +-------------+ */
#ifndef AG_TILES_CONV2D_POOL_WINDOWS_H
#define AG_TILES_CONV2D_POOL_WINDOWS_H

#include "ag_shapes.h"
#include "tiles/helpers.h"
#include "tiles/tap_ranges.h"

#include <stdbool.h>
#include <stddef.h>

/* The taps of one window that are inside x: rows and columns from `row` and `column` on; the first of them is
 * at `offset` in the image. */
typedef struct {
    ptrdiff_t offset;
    int32_t row, rows, column, columns;
} ag_window_taps;

static inline ag_window_taps ag_window_taps_of(int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    const ag_tap_range vertical =
        ag_tap_range_from(p, s->oh, s->stride_h, s->pad_top, s->kh, s->dilation_h, s->h);
    const ag_tap_range horizontal =
        ag_tap_range_from(q, s->ow, s->stride_w, s->pad_left, s->kw, s->dilation_w, s->w);
    ag_window_taps taps;
    taps.row = vertical.first;
    taps.rows = vertical.last - vertical.first;
    taps.column = horizontal.first;
    taps.columns = horizontal.last - horizontal.first;
    taps.offset = (ptrdiff_t)(p * s->stride_h - s->pad_top + taps.row * s->dilation_h) * s->x_h +
                  (ptrdiff_t)(q * s->stride_w - s->pad_left + taps.column * s->dilation_w) * s->x_w;
    return taps;
}

/* Offset in the image of the convolution's window at the first element of the pooling window. */
static inline ptrdiff_t ag_pool_corner(int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    return (ptrdiff_t)(p * s->pool_stride_h * s->stride_h - s->pad_top) * s->x_h +
           (ptrdiff_t)(q * s->pool_stride_w * s->stride_w - s->pad_left) * s->x_w;
}

/* Whether a row of the convolution's window is contiguous in x. */
static inline bool ag_window_rows_contiguous(const ag_conv2d_pool_shape *s) {
    return (s->c == 1 || s->x_c == 1) && (s->kw == 1 || s->dilation_w * s->x_w == s->c);
}

/* Some pooled pixels: rows top ... bottom - 1, columns first ... last - 1. */
typedef struct {
    int32_t top, bottom, first, last;
} ag_pool_region;

/* Along one axis, the pooling windows *first ... *last - 1 are those in which all windows of the convolution
 * are inside x. */
static inline void ag_pool_inside(int32_t *first, int32_t *last, int32_t count, int32_t pool_stride,
                                  int32_t elements, int32_t windows, int32_t stride, int32_t pad,
                                  int32_t reach, int32_t extent) {
    *first = 0;
    while (*first < count && *first * pool_stride * stride < pad) {
        ++*first;
    }
    for (*last = *first; *last < count; ++*last) {
        const int32_t window = *last * pool_stride + elements - 1;
        if (window >= windows || window * stride - pad + reach >= extent) {
            break;
        }
    }
}

/* The interior: all windows in their pooling windows are inside x. */
static inline ag_pool_region ag_pool_interior_of(const ag_conv2d_pool_shape *s) {
    ag_pool_region i;
    ag_pool_inside(&i.first, &i.last, s->pw, s->pool_stride_w, s->pool_w, s->ow, s->stride_w, s->pad_left,
                   (s->kw - 1) * s->dilation_w, s->w);
    ag_pool_inside(&i.top, &i.bottom, s->ph, s->pool_stride_h, s->pool_h, s->oh, s->stride_h, s->pad_top,
                   (s->kh - 1) * s->dilation_h, s->h);
    return i;
}

#endif
