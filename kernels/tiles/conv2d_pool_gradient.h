/* What the gradients of a pooled convolution share: how the windows that the index names lie in the image. */
#ifndef AG_TILES_CONV2D_POOL_GRADIENT_H
#define AG_TILES_CONV2D_POOL_GRADIENT_H

#include "tiles/helpers.h"
#include "tiles/conv2d_pool_windows.h"

enum { AG_POOL_ELEMENTS = 4 };

/* Where in the image the convolution's window of an element of the pooling's window begins, from the first's.
 */
static inline ptrdiff_t ag_pool_element(int32_t element, const ag_conv2d_pool_shape *s) {
    return (ptrdiff_t)(element / s->pool_w) * s->stride_h * s->x_h +
           (ptrdiff_t)(element % s->pool_w) * s->stride_w * s->x_w;
}

typedef struct {
    const ag_conv2d_pool_shape *s;
    ptrdiff_t filter, row_step, tap_step, element[AG_POOL_ELEMENTS];
    bool follow; /* the taps of a row, one another in x */
    bool small;  /* the pooling's window: element[] holds all of it */
    /* the pooled pixels whose index names windows inside x: rows top ... bottom - 1, columns first ... last -
     * 1 */
    int32_t top, bottom, first, last;
} ag_pool_gradient;

static void ag_pool_gradient_of(ag_pool_gradient *g, const ag_conv2d_pool_shape *s) {
    const int32_t elements = s->pool_h * s->pool_w;
    g->s = s;
    g->filter = (ptrdiff_t)s->kh * s->kw * s->c;
    g->row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    g->tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    g->follow = (s->c == 1 || s->x_c == 1) && (s->kw == 1 || g->tap_step == s->c);
    g->small = elements <= AG_POOL_ELEMENTS;
    for (int32_t i = 0; g->small && i < elements; i++) {
        g->element[i] = ag_pool_element(i, s);
    }
    for (g->first = 0; g->first < s->pw && !ag_pool_inside_w(g->first, s);) {
        g->first++;
    }
    for (g->last = g->first; g->last < s->pw && ag_pool_inside_w(g->last, s);) {
        g->last++;
    }
    for (g->top = 0; g->top < s->ph && !ag_pool_inside_h(g->top, s);) {
        g->top++;
    }
    for (g->bottom = g->top; g->bottom < s->ph && ag_pool_inside_h(g->bottom, s);) {
        g->bottom++;
    }
}

/* Where in the image the convolution's window of the first element of the pooling's window begins. */
static inline ptrdiff_t ag_pool_corner(int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    return (ptrdiff_t)(p * s->pool_stride_h * s->stride_h - s->pad_top) * s->x_h +
           (ptrdiff_t)(q * s->pool_stride_w * s->stride_w - s->pad_left) * s->x_w;
}

/* The window of the convolution that the index names. */
static inline ag_inside ag_named_window(int32_t p, int32_t q, int32_t which, const ag_conv2d_pool_shape *s) {
    return ag_inside_of(p * s->pool_stride_h + which / s->pool_w, q * s->pool_stride_w + which % s->pool_w,
                        s);
}

#endif
