/* Windows of a convolution as the operands of a block (tile.h). Where the elements of a window's row follow
 * one another in x, each row is a segment of the sum; otherwise windows are packed, a few elements at a time.
 */
#ifndef AG_TILES_CONV2D_WINDOWS_H
#define AG_TILES_CONV2D_WINDOWS_H

#include "ag_shapes.h"
#include "tiles/spans.h"
#include "tiles/tile.h"

#include <stdbool.h>

enum { AG_PACKED = 16 }; /* elements of a window that are packed at once */

/* One group of a convolution: channels of x and of y, and the distance from one output channel's weights to
 * the next one's. */
typedef struct {
    const ag_conv2d_shape *s;
    int32_t channels, outputs;
    ptrdiff_t filter;
} ag_conv2d_group;

static inline ag_conv2d_group ag_group_of(const ag_conv2d_shape *s) {
    ag_conv2d_group g;
    g.s = s;
    g.channels = s->c / s->groups;
    g.outputs = s->o / s->groups;
    g.filter = (ptrdiff_t)s->kh * s->kw * g.channels;
    return g;
}

/* Whether `columns` taps of a row, all channels of each, follow one another in x. */
static inline bool ag_taps_follow(const ag_conv2d_group *g, int32_t columns) {
    const ptrdiff_t step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    return (g->channels == 1 || g->s->x_c == 1) && (columns == 1 || step == g->channels);
}

/* A window of rows * run elements in parts that fit: `length` elements, from the `from`-th on, of each of
 * `taken` rows from `row` on. */
typedef struct {
    int32_t rows, run, row, taken, from, length;
} ag_parts;

static inline ag_parts ag_parts_of(int32_t rows, int32_t run) {
    ag_parts p;
    p.rows = rows;
    p.run = p.length = run;
    p.row = p.taken = p.from = 0;
    return p;
}

static inline bool ag_next_part(ag_parts *p) {
    p->from += p->length;
    if (p->from >= p->run) {
        p->row += p->taken;
        p->from = 0;
    }
    if (p->row >= p->rows) {
        return false;
    }
    if (p->run <= AG_PACKED) {
        const int32_t fit = AG_PACKED / p->run, left = p->rows - p->row;
        p->taken = fit < left ? fit : left;
    } else {
        const int32_t turns = (p->run + AG_PACKED - 1) / AG_PACKED, most = (p->run + turns - 1) / turns;
        p->taken = 1;
        p->length = p->run - p->from < most ? p->run - p->from : most;
    }
    return true;
}

/* Packs a part of the window at x, whose channels follow one another then. */
static void ag_pack(float *to, const float *x, const ag_parts *part, const ag_conv2d_group *g) {
    const ptrdiff_t row_step = (ptrdiff_t)g->s->dilation_h * g->s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    const ptrdiff_t channel_step = g->s->x_c;
    x += part->row * row_step;
    for (int32_t row = 0; row < part->taken; row++, x += row_step) {
        int32_t channel = part->from % g->channels;
        const float *tap = x + part->from / g->channels * tap_step, *at = tap + channel * channel_step;
        for (int32_t i = 0; i < part->length; i++) {
            *to++ = *at;
            at += channel_step;
            if (++channel == g->channels) {
                channel = 0;
                tap += tap_step;
                at = tap;
            }
        }
    }
}

#endif
