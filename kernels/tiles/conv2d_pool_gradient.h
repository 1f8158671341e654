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

/* A block of a window of x, and the element of dy that multiplies it. */
typedef struct {
    const float *x;
    float dy;
} ag_weighted_window;

typedef struct {
    const ag_conv2d_pool_shape *s;
    ptrdiff_t filter, row_step, tap_step, element[AG_POOL_ELEMENTS];
    bool contiguous; /* the taps of a row are contiguous in x */
    bool tabulated;  /* element[] covers the whole pooling window */
    ag_pool_region interior;
} ag_pool_gradient;

static void ag_pool_gradient_of(ag_pool_gradient *g, const ag_conv2d_pool_shape *s) {
    const int32_t elements = s->pool_h * s->pool_w;
    g->s = s;
    g->filter = (ptrdiff_t)s->kh * s->kw * s->c;
    g->row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    g->tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    g->contiguous = ag_window_rows_contiguous(s);
    g->tabulated = elements <= AG_POOL_ELEMENTS;
    for (int32_t i = 0; g->tabulated && i < elements; i++) {
        g->element[i] = ag_pool_element_offset(i, s);
    }
    g->interior = ag_pool_interior_of(s);
}

/* The valid taps of the window of the convolution that `which` selects. */
static inline ag_window_taps ag_selected_window(int32_t p, int32_t q, int32_t which,
                                                const ag_conv2d_pool_shape *s) {
    return ag_window_taps_of(p * s->pool_stride_h + which / s->pool_w,
                             q * s->pool_stride_w + which % s->pool_w, s);
}

#endif
