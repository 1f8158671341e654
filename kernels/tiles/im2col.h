/* Windows of a convolution whose elements do not follow one another in x, a few of them at a time. */
#ifndef AG_TILES_IM2COL_H
#define AG_TILES_IM2COL_H

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

/* Where the elements of a part of the window lie, from the window's beginning; its channels follow one
 * another then. */
static void ag_pack_from(ptrdiff_t offsets[AG_PACKED], const ag_parts *part, const ag_conv2d_group *g) {
    const ptrdiff_t row_step = (ptrdiff_t)g->s->dilation_h * g->s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    for (int32_t row = part->row; row < part->row + part->taken; row++) {
        int32_t tap = part->from / g->channels, channel = part->from % g->channels;
        for (int32_t i = 0; i < part->length; i++) {
            *offsets++ = row * row_step + tap * tap_step + (ptrdiff_t)channel * g->s->x_c;
            if (++channel == g->channels) {
                channel = 0;
                tap++;
            }
        }
    }
}

/* Packs `count` elements of the windows at x. */
static inline void ag_pack(float packed[AG_TILE_M][AG_PACKED], const float *const x[AG_TILE_M],
                           const ptrdiff_t offsets[AG_PACKED], int32_t count) {
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        const float *from = x[i];
        float *to = packed[i];
        for (int32_t j = 0; j < count; j++) {
            to[j] = from[offsets[j]];
        }
    }
}

#endif
