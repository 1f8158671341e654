/* What the gradients of a pooled convolution share: how the windows that the index names lie in the image. */
#ifndef AG_TILES_POOLED_GRADIENT_H
#define AG_TILES_POOLED_GRADIENT_H

#include "tiles/pooled.h"

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
} ag_pool_gradient;

static inline int32_t ag_bytes(ptrdiff_t floats) {
    return (int32_t)(floats * (ptrdiff_t)sizeof(float));
}

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
}

/* A pooled pixel as its gradient sees it: whether all windows that its index may name are inside, and where
 * the first of them begins. */
typedef struct {
    int32_t p, q;
    bool inside;
    ptrdiff_t at;
} ag_pooled_pixel;

static inline ag_pooled_pixel ag_pooled_pixel_of(int32_t p, int32_t q, bool inside,
                                                 const ag_conv2d_pool_shape *s) {
    ag_pooled_pixel pixel;
    pixel.p = p * s->pool_stride_h;
    pixel.q = q * s->pool_stride_w;
    pixel.inside = inside && ag_pool_inside_w(q, s);
    pixel.at = (ptrdiff_t)(pixel.p * s->stride_h - s->pad_top) * s->x_h +
               (ptrdiff_t)(pixel.q * s->stride_w - s->pad_left) * s->x_w;
    return pixel;
}

/* The window of the convolution that the index names. */
static inline ag_inside ag_named_window(int32_t which, const ag_pooled_pixel *pixel,
                                        const ag_pool_gradient *g) {
    if (pixel->inside) {
        const ag_inside in = {pixel->at + g->element[which], 0, g->s->kh, 0, g->s->kw};
        return in;
    }
    return ag_inside_of(pixel->p + which / g->s->pool_w, pixel->q + which % g->s->pool_w, g->s);
}

#endif
