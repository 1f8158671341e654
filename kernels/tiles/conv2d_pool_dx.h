/* The gradient of a pooled convolution's image: for every element of dy that is not 0, dy times the channel's
 * weights added to the window that was chosen. The backend's rows.h comes first. */
#ifndef AG_TILES_CONV2D_POOL_DX_H
#define AG_TILES_CONV2D_POOL_DX_H

#include "tiles/conv2d_pool_gradient.h"

/* dy times the weights of one channel, added to the window. */
static AG_NOINLINE void ag_pool_dx_window(float *dx, const float *w, float dy, const ag_inside *in,
                                          const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    const int32_t run = in->columns * s->c;
    if (in->rows <= 0 || in->columns <= 0) {
        return;
    }
    dx += in->at;
    w += ((ptrdiff_t)in->row * s->kw + in->column) * s->c;
    if (g->follow) {
        ag_axpy_rows(dx, ag_bytes(g->row_step - run), w, ag_bytes((ptrdiff_t)s->kw * s->c - run), in->rows,
                     run, dy);
        return;
    }
    for (int32_t i = 0; i < in->rows; i++, dx += g->row_step, w += (ptrdiff_t)s->kw * s->c) {
        ag_axpy_rows(dx, ag_bytes(g->tap_step - s->c), w, 0, in->columns, s->c, dy);
    }
}

/* The same for all channels of a pooled pixel whose index names windows inside x; dx at its corner. */
static inline void ag_pool_dx_pixel(float *dx, const float *w, const float *dy, const uint8_t *index,
                                    const ag_pool_gradient *g) {
    const int32_t run = g->s->kw * g->s->c, skip = ag_bytes(g->row_step - run), rows = g->s->kh;
    for (int32_t o = 0; o < g->s->o; o++, w += g->filter) {
        if (dy[o] != 0.0f) {
            ag_axpy_rows(dx + g->element[index[o]], skip, w, 0, rows, run, dy[o]);
        }
    }
}

static void ag_conv2d_pool_dx_by_rows(const float *dy, const uint8_t *index, const float *w, float *dx,
                                      int32_t n, const ag_conv2d_pool_shape *s) {
    ag_pool_gradient g;
    ag_pool_gradient_of(&g, s);
    for (; n > 0; n--, dx += s->x_n) {
        ag_zero_floats(dx, s->h * s->w * s->c);
        for (int32_t p = 0; p < s->ph; p++) {
            const bool inside = g.small && g.follow && p >= g.top && p < g.bottom;
            for (int32_t q = 0; q < s->pw; q++, dy += s->o, index += s->o) {
                if (inside && q >= g.first && q < g.last) {
                    ag_pool_dx_pixel(dx + ag_pool_corner(p, q, s), w, dy, index, &g);
                    continue;
                }
                for (int32_t o = 0; o < s->o; o++) {
                    if (dy[o] != 0.0f) {
                        const ag_inside in = ag_named_window(p, q, index[o], s);
                        ag_pool_dx_window(dx, w + o * g.filter, dy[o], &in, &g);
                    }
                }
            }
        }
    }
}

#endif
