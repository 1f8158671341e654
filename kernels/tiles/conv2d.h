/* Convolution over blocks: AG_TILE_M pixels whose windows lie inside x in the same way, against AG_TILE_N
 * output channels. */
#ifndef AG_TILES_CONV2D_H
#define AG_TILES_CONV2D_H

#include "tiles/im2col.h"
#include "tiles/pixel_tiles.h"
#include "tiles/tap_ranges.h"

/* The output channels from `o` on, AG_TILE_N or what is left of them, by way of a block's own sums. */
static AG_NOINLINE void ag_conv2d_part(ag_tile *t, const ag_pixels *pixels, const float *w, int32_t o,
                                       const ag_conv2d_group *g) {
    const int32_t left = g->outputs - o, channels = left < AG_TILE_N ? left : AG_TILE_N;
    const float beta = t->beta;
    float sums[AG_TILE_M][AG_TILE_N];
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t->b[j] = w;
        w += j + 1 < channels ? g->filter : 0;
    }
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    AG_MICROKERNEL(nt)(t);
    t->beta = beta;
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t j = 0; j < channels; j++) {
            float *to = pixels->to[i] + o + j;
            *to = beta == 0.0f ? sums[i][j] : sums[i][j] + *to;
        }
    }
}

/* All output channels for the pixels of a block. t->a, k, segments and skips are set; `w` are the weights
 * that the sum begins with. */
static void ag_conv2d_outputs(ag_tile *t, const ag_pixels *pixels, const float *w, const ag_conv2d_group *g) {
    const int32_t whole =
        pixels->in_row ? g->outputs - AG_TILE_N : -1; /* the last block that is stored in y */
    const ptrdiff_t filter = g->filter;
    int32_t o = 0;
    t->c_step = ag_bytes(g->s->ldy);
    t->c = pixels->to[0];
    for (; o <= whole; o += AG_TILE_N) {
        for (int32_t j = 0; j < AG_TILE_N; j++, w += filter) {
            t->b[j] = w;
        }
        AG_MICROKERNEL(nt)(t);
        t->c += AG_TILE_N;
    }
    for (; o < g->outputs; o += AG_TILE_N, w += AG_TILE_N * filter) {
        ag_conv2d_part(t, pixels, w, o, g);
    }
}

/* The pixels of a region whose windows are packed, part by part; each part after the first adds to y. */
static AG_NOINLINE void ag_conv2d_packed(ag_tile *t, const ag_place *region, const float *w, int32_t rows,
                                         int32_t run, const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    float packed[AG_TILE_M][AG_PACKED];
    ptrdiff_t offsets[AG_PACKED];
    ag_parts part = ag_parts_of(rows, run);
    ag_pixels pixels;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        t->a[i] = packed[i];
    }
    t->a_skip = 0;
    while (ag_next_part(&part)) {
        ag_place at = *region;
        ag_pack_from(offsets, &part, g);
        t->k = part.length;
        t->k_runs = part.taken;
        t->b_skip = ag_bytes(w_row - part.length);
        while (at.left > 0) {
            ag_next_pixels(&pixels, &at);
            ag_pack(packed, pixels.from, offsets, part.taken * part.length);
            ag_conv2d_outputs(t, &pixels, w + part.row * w_row + part.from, g);
        }
        t->beta = 1.0f;
    }
}

/* The pixels of y whose windows are alike along both axes. */
static void ag_conv2d_region(const float *x, const float *w, float *y, ag_span down, ag_span across,
                             const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    const int32_t rows = down.last - down.first, columns = across.last - across.first;
    const int32_t run = columns * g->channels, wide = across.end - across.begin;
    ag_pixels pixels;
    ag_place at;
    ag_tile t;
    at.from = x + (ptrdiff_t)(down.begin * s->stride_h - s->pad_top) * s->x_h + down.first * row_step;
    at.from += (ptrdiff_t)(across.begin * s->stride_w - s->pad_left) * s->x_w + across.first * tap_step;
    at.to = y + ((ptrdiff_t)down.begin * s->ow + across.begin) * s->ldy;
    at.from_step = (ptrdiff_t)s->stride_w * s->x_w;
    at.from_row = (ptrdiff_t)s->stride_h * s->x_h - wide * at.from_step;
    at.to_step = s->ldy;
    at.to_row = (ptrdiff_t)(s->ow - wide) * s->ldy;
    at.column = 0;
    at.columns = wide;
    at.left = (down.end - down.begin) * wide;
    if (rows <= 0 || columns <= 0) {
        ag_clear_pixels(at, g->outputs, 1);
        return;
    }
    w += ((ptrdiff_t)down.first * s->kw + across.first) * g->channels;
    t.alpha = 1.0f;
    t.beta = 0.0f;
    t.k = run;
    t.k_runs = rows;
    t.a_skip = ag_bytes(row_step - run);
    t.b_skip = ag_bytes((ptrdiff_t)s->kw * g->channels - run);
    if (!ag_taps_follow(g, columns)) {
        ag_conv2d_packed(&t, &at, w, rows, run, g);
        return;
    }
    while (at.left > 0) {
        ag_next_pixels(&pixels, &at);
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            t.a[i] = pixels.from[i];
        }
        ag_conv2d_outputs(&t, &pixels, w, g);
    }
}

static void ag_conv2d_tiled(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *s) {
    const ag_conv2d_group g = ag_group_of(s);
    ag_span down, across;
    for (; n > 0; n--, x += s->x_n, y += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t i = 0; i < s->groups; i++) {
            for (down.end = 0; down.end < s->oh;) {
                down = ag_span_from(down.end, s->oh, s->stride_h, s->pad_top, s->kh, s->dilation_h, s->h);
                for (across.end = 0; across.end < s->ow;) {
                    across =
                        ag_span_from(across.end, s->ow, s->stride_w, s->pad_left, s->kw, s->dilation_w, s->w);
                    ag_conv2d_region(x + (ptrdiff_t)i * g.channels * s->x_c,
                                     w + (ptrdiff_t)i * g.outputs * g.filter, y + (ptrdiff_t)i * g.outputs,
                                     down, across, &g);
                }
            }
        }
    }
}

#endif
