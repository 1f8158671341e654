/* Input gradient of a pooled convolution: for every dy != 0, dy times the weights of its output channel is
 * added to the window of dx that `index` selected.
 *
 *     dy[p, q, o], index = 2        dx
 *     +---+---+                     . . . . . .
 *     |   |   |                     . +-----+ .    dx[window] += dy * w[o], row by row
 *     +---+---+      ------->       . |w[o] | .
 *     | x |   |                     . +-----+ .
 *     +---+---+ */
#include "ag_kernels.h"
#include "tiles/conv2d_pool_gradient.h"

/* Adds dy times the weights of one channel to a window. */
static AG_NOINLINE void ag_pool_dx_window(float *dx, const float *w, float dy, const ag_window_taps *taps,
                                          const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    const int32_t row_length = taps->columns * s->c;
    if (taps->rows <= 0 || taps->columns <= 0) {
        return;
    }
    dx += taps->offset;
    w += ((ptrdiff_t)taps->row * s->kw + taps->column) * s->c;
    if (g->contiguous) {
        ag_axpy_rows(dx, ag_bytes(g->row_step - row_length), w,
                     ag_bytes((ptrdiff_t)s->kw * s->c - row_length), taps->rows, row_length, dy);
        return;
    }
    for (int32_t i = 0; i < taps->rows; i++, dx += g->row_step, w += (ptrdiff_t)s->kw * s->c) {
        ag_axpy_rows(dx, ag_bytes(g->tap_step - s->c), w, 0, taps->columns, s->c, dy);
    }
}

/* The same for all channels of an interior pooled pixel; dx at its corner. */
static inline void ag_pool_dx_pixel(float *dx, const float *w, const float *dy, const uint8_t *index,
                                    const ag_pool_gradient *g) {
    const int32_t row_length = g->s->kw * g->s->c, skip = ag_bytes(g->row_step - row_length), rows = g->s->kh;
    for (int32_t o = 0; o < g->s->o; o++, w += g->filter) {
        if (dy[o] != 0.0f) {
            ag_axpy_rows(dx + g->element[index[o]], skip, w, 0, rows, row_length, dy[o]);
        }
    }
}

void AG_SYMBOL(conv2d_pool_dx_f32)(const float *dy, const uint8_t *index, const float *w, float *dx,
                                   int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    ag_pool_gradient g;
    ag_pool_gradient_of(&g, s);
    for (; n > 0; n--, dx += s->x_n) {
        ag_zero_floats(dx, s->h * s->w * s->c);
        for (int32_t p = 0; p < s->ph; p++) {
            const bool inside = g.tabulated && g.contiguous && p >= g.interior.top && p < g.interior.bottom;
            for (int32_t q = 0; q < s->pw; q++, dy += s->o, index += s->o) {
                if (inside && q >= g.interior.first && q < g.interior.last) {
                    ag_pool_dx_pixel(dx + ag_pool_corner(p, q, s), w, dy, index, &g);
                    continue;
                }
                for (int32_t o = 0; o < s->o; o++) {
                    if (dy[o] != 0.0f) {
                        const ag_window_taps taps = ag_selected_window(p, q, index[o], s);
                        ag_pool_dx_window(dx, w + o * g.filter, dy[o], &taps, &g);
                    }
                }
            }
        }
    }
}
