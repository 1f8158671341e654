/* The gradient of a convolution's image over blocks: AG_TILE_M pixels of dx that lie in their windows in the
 * same way against AG_TILE_N channels. Each tap is a segment of the sum over output channels, and each row of
 * taps is a block's sum, added to dx. */
#ifndef AG_TILES_CONV2D_DX_H
#define AG_TILES_CONV2D_DX_H

#include "tiles/conv2d_group.h"
#include "tiles/pixel_tiles.h"
#include "tiles/tap_ranges.h"

/* Along one axis, the elements phase, phase + stride, ... of x: the taps that meet them, in the order of the
 * windows. The first element's are in the windows from `window` on, `apart` windows and `tap_step` taps
 * apart, the last tap first. */
typedef struct {
    int32_t phase, elements, taps, tap, tap_step, window, apart;
} ag_meeting;

static ag_meeting ag_meeting_of(int32_t phase, int32_t extent, int32_t stride, int32_t pad, int32_t taps,
                                int32_t dilation) {
    ag_meeting m = {0, 0, 0, 0, 0, 0, 1};
    m.phase = phase;
    m.elements = (extent - phase + stride - 1) / stride;
    for (int32_t tap = 0; tap < taps; tap++) {
        const int32_t at = phase + pad - tap * dilation;
        if (at % stride == 0) {
            if (m.taps > 0) {
                m.tap_step = tap - m.tap;
                m.apart = m.window - at / stride;
            }
            m.tap = tap;
            m.window = at / stride;
            m.taps++;
        }
    }
    return m;
}

static inline ag_span ag_meeting_span(const ag_meeting *m, int32_t begin, int32_t windows) {
    return ag_span_from(begin, m->elements, 1, -m->window, m->taps, m->apart, windows);
}

/* AG_TILE_N channels from `k` on, of which the first `back` are there already, by way of a block's own sums.
 */
static AG_NOINLINE void ag_dx_part(ag_tile *t, const ag_pixels *pixels, int32_t k, int32_t back,
                                   ptrdiff_t apart) {
    const float beta = t->beta;
    float sums[AG_TILE_M][AG_TILE_N];
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    AG_MICROKERNEL(nn)(t);
    t->beta = beta;
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t j = back; j < AG_TILE_N; j++) {
            float *to = pixels->to[i] + (k + j) * apart;
            *to = beta == 0.0f ? sums[i][j] : sums[i][j] + *to;
        }
    }
}

/* All channels for the pixels of a block; t->a, k, segments, skips and b_step are set. */
static void ag_dx_channels(ag_tile *t, const ag_pixels *pixels, const float *w, ptrdiff_t step,
                           const ag_conv2d_group *g) {
    const int32_t last = g->channels - AG_TILE_N;
    int32_t k = 0;
    t->b[0] = w;
    if (pixels->in_row && g->s->x_c == 1) {
        t->c = pixels->to[0];
        t->c_step = ag_bytes(step);
        for (; k <= last; k += AG_TILE_N) {
            AG_MICROKERNEL(nn)(t);
            t->b[0] += AG_TILE_N;
            t->c += AG_TILE_N;
        }
    }
    for (; k < g->channels; k += AG_TILE_N) {
        const int32_t back = k > last ? k - last : 0;
        t->b[0] = w + k - back;
        ag_dx_part(t, pixels, k - back, back, g->s->x_c);
    }
}

/* The same where there are fewer channels than a block has. */
static void ag_dx_narrow(const ag_tile *t, const ag_pixels *pixels, const float *w,
                         const ag_conv2d_group *g) {
    const int32_t floats = (int32_t)sizeof(float);
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t k = 0; k < g->channels; k++) {
            float *to = pixels->to[i] + (ptrdiff_t)k * g->s->x_c;
            const float *a = t->a[i], *b = w + k;
            float sum = 0.0f;
            for (int32_t run = 0; run < t->k_runs; run++) {
                for (int32_t o = 0; o < t->k; o++, b += g->filter) {
                    sum += *a++ * *b;
                }
                a += t->a_skip / floats;
                b += t->b_skip / floats;
            }
            *to = t->beta == 0.0f ? sum : sum + *to;
        }
    }
}

/* The pixels of dx whose taps are alike along both axes; dy, w and dx begin with the group. */
static void ag_dx_region(const float *dy, const float *w, float *dx, const ag_meeting *rows, ag_span down,
                         const ag_meeting *columns, ag_span across, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const int32_t v = down.last - down.first, u = across.last - across.first;
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy;
    ag_pixels pixels;
    ag_place at;
    ag_tile t;
    at.columns = across.end - across.begin;
    at.column = 0;
    at.left = (down.end - down.begin) * at.columns;
    at.to = dx + ((ptrdiff_t)rows->phase + (ptrdiff_t)down.begin * s->stride_h) * s->x_h;
    at.to += ((ptrdiff_t)columns->phase + (ptrdiff_t)across.begin * s->stride_w) * s->x_w;
    at.to_step = (ptrdiff_t)s->stride_w * s->x_w;
    at.to_row = (ptrdiff_t)s->stride_h * s->x_h - at.columns * at.to_step;
    at.from = dy + (rows->window + down.begin + down.first * rows->apart) * dy_row;
    at.from += (ptrdiff_t)(columns->window + across.begin + across.first * columns->apart) * s->ldy;
    at.from_step = s->ldy;
    at.from_row = dy_row - at.columns * at.from_step;
    if (v <= 0 || u <= 0) {
        ag_clear_pixels(at, g->channels, s->x_c);
        return;
    }
    w += (ptrdiff_t)(rows->tap - down.first * rows->tap_step) * s->kw * g->channels;
    w += (ptrdiff_t)(columns->tap - across.first * columns->tap_step) * g->channels;
    t.alpha = 1.0f;
    t.k = g->outputs;
    t.k_runs = u;
    t.b_step = ag_bytes(g->filter);
    t.a_skip = ag_bytes((ptrdiff_t)columns->apart * s->ldy - g->outputs);
    t.b_skip = ag_bytes(-(ptrdiff_t)columns->tap_step * g->channels - g->outputs * g->filter);
    while (at.left > 0) {
        ag_next_pixels(&pixels, &at);
        t.beta = 0.0f;
        for (int32_t i = 0; i < v; i++) {
            const float *row = w - (ptrdiff_t)i * rows->tap_step * s->kw * g->channels;
            for (int32_t q = 0; q < AG_TILE_M; q++) {
                t.a[q] = pixels.from[q] + (ptrdiff_t)i * rows->apart * dy_row;
            }
            if (g->channels < AG_TILE_N) {
                ag_dx_narrow(&t, &pixels, row, g);
            } else {
                ag_dx_channels(&t, &pixels, row, at.to_step, g);
            }
            t.beta = 1.0f;
        }
    }
}

/* One group of one image. */
static void ag_dx_group(const float *dy, const float *w, float *dx, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    ag_span down, across;
    for (int32_t i = 0; i < s->stride_h && i < s->h; i++) {
        const ag_meeting rows = ag_meeting_of(i, s->h, s->stride_h, s->pad_top, s->kh, s->dilation_h);
        for (int32_t j = 0; j < s->stride_w && j < s->w; j++) {
            const ag_meeting columns = ag_meeting_of(j, s->w, s->stride_w, s->pad_left, s->kw, s->dilation_w);
            for (down.end = 0; down.end < rows.elements;) {
                down = ag_meeting_span(&rows, down.end, s->oh);
                for (across.end = 0; across.end < columns.elements;) {
                    across = ag_meeting_span(&columns, across.end, s->ow);
                    ag_dx_region(dy, w, dx, &rows, down, &columns, across, g);
                }
            }
        }
    }
}

static void ag_conv2d_dx_tiled(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *s) {
    const ag_conv2d_group g = ag_group_of(s);
    for (; n > 0; n--, dy += (ptrdiff_t)s->oh * s->ow * s->ldy, dx += s->x_n) {
        for (int32_t i = 0; i < s->groups; i++) {
            ag_dx_group(dy + (ptrdiff_t)i * g.outputs, w + (ptrdiff_t)i * g.outputs * g.filter,
                        dx + (ptrdiff_t)i * g.channels * s->x_c, &g);
        }
    }
}

#endif
