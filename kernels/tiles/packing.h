/* Windows of a convolution whose elements do not follow one another in x, a few of them at a time. */
#ifndef AG_TILES_PACKING_H
#define AG_TILES_PACKING_H

#include "tiles/conv2d_group.h"

enum { AG_PACKED = 18 }; /* elements of a window that are packed at once */

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
    const int32_t skipped = part->from % g->channels;
    const float *rest = to + part->length;
    x += part->row * row_step + part->from / g->channels * tap_step;
    for (int32_t row = 0; row < part->taken; row++, x += row_step, rest += part->length) {
        const float *tap = x, *at = x + skipped * channel_step;
        int32_t left = g->channels - skipped;
        while (to < rest) {
            *to++ = *at;
            at += channel_step;
            if (--left == 0) {
                left = g->channels;
                tap += tap_step;
                at = tap;
            }
        }
    }
}

#endif
