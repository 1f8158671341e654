/* Shared by the gradients of conv2d_pool: addresses of the windows of the convolution that `index` selects.
 *
 *     pw x ph pooled pixels
 *     +--+-----------+--+
 *     |  |   edge    |  |     interior (rows top .. bottom - 1, columns first .. last - 1): all windows are
 *     +--+-----------+--+     inside x, and one table of offsets, element[index], gives their address;
 *     |  | interior  |  |     edge: valid taps are computed for each window (conv2d_pool_windows.h)
 *     +--+-----------+--+ */
#ifndef AG_TILES_CONV2D_POOL_GRADIENT_H
#define AG_TILES_CONV2D_POOL_GRADIENT_H

#include "tiles/axpy_rows.h"
#include "tiles/helpers.h"
#include "tiles/conv2d_pool_windows.h"
#include "tiles/symbols.h"

enum { AG_POOL_ELEMENTS = 4 };

/* Offset of the convolution's window at an element of the pooling window from its first element's. */
static inline ptrdiff_t ag_pool_element_offset(int32_t element, const ag_conv2d_pool_shape *s) {
    return (ptrdiff_t)(element / s->pool_w) * s->stride_h * s->x_h +
           (ptrdiff_t)(element % s->pool_w) * s->stride_w * s->x_w;
}

typedef struct {
    const ag_conv2d_pool_shape *s;
    ptrdiff_t filter, row_step, tap_step, element[AG_POOL_ELEMENTS];
    bool contiguous; /* the taps of a row are contiguous in x */
    bool tabulated;  /* element[] covers the whole pooling window */
    /* the interior pooled pixels: rows top ... bottom - 1, columns first ... last - 1 */
    int32_t top, bottom, first, last;
} ag_pool_gradient;

static void ag_pool_gradient_of(ag_pool_gradient *g, const ag_conv2d_pool_shape *s) {
    const int32_t elements = s->pool_h * s->pool_w;
    g->s = s;
    g->filter = (ptrdiff_t)s->kh * s->kw * s->c;
    g->row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    g->tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    g->contiguous = (s->c == 1 || s->x_c == 1) && (s->kw == 1 || g->tap_step == s->c);
    g->tabulated = elements <= AG_POOL_ELEMENTS;
    for (int32_t i = 0; g->tabulated && i < elements; i++) {
        g->element[i] = ag_pool_element_offset(i, s);
    }
    for (g->first = 0; g->first < s->pw && !ag_pool_window_inside_w(g->first, s);) {
        g->first++;
    }
    for (g->last = g->first; g->last < s->pw && ag_pool_window_inside_w(g->last, s);) {
        g->last++;
    }
    for (g->top = 0; g->top < s->ph && !ag_pool_window_inside_h(g->top, s);) {
        g->top++;
    }
    for (g->bottom = g->top; g->bottom < s->ph && ag_pool_window_inside_h(g->bottom, s);) {
        g->bottom++;
    }
}

/* Offset in the image of the convolution's window at the first element of the pooling window. */
static inline ptrdiff_t ag_pool_corner(int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    return (ptrdiff_t)(p * s->pool_stride_h * s->stride_h - s->pad_top) * s->x_h +
           (ptrdiff_t)(q * s->pool_stride_w * s->stride_w - s->pad_left) * s->x_w;
}

/* The valid taps of the window of the convolution that `which` selects. */
static inline ag_window_taps ag_selected_window(int32_t p, int32_t q, int32_t which,
                                                const ag_conv2d_pool_shape *s) {
    return ag_window_taps_of(p * s->pool_stride_h + which / s->pool_w,
                             q * s->pool_stride_w + which % s->pool_w, s);
}

#endif
