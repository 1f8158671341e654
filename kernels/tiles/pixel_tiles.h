/* The pixels of a region of an image, one block (tile.h) of them after the other. */
#ifndef AG_TILES_PIXEL_TILES_H
#define AG_TILES_PIXEL_TILES_H

#include "tiles/microkernel.h"

#include <stdbool.h>

/* Where a region goes on: what is read for the next pixel and where its result lies, distances from pixel to
 * pixel of a row and from the end of a row to the next one; `left` pixels in the region. */
typedef struct {
    const float *from;
    float *to;
    ptrdiff_t from_step, from_row, to_step, to_row;
    int32_t column, columns, left;
} ag_place;

/* The pixels of a block; those behind the last repeat it. */
typedef struct {
    const float *from[AG_TILE_M];
    float *to[AG_TILE_M];
    int32_t count;
    bool in_row; /* results as far apart as those of neighbours */
} ag_pixels;

static inline void ag_next_pixels(ag_pixels *pixels, ag_place *at) {
    pixels->count = at->left < AG_TILE_M ? at->left : AG_TILE_M;
    pixels->in_row = at->column + AG_TILE_M <= at->columns;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        pixels->from[i] = at->from;
        pixels->to[i] = at->to;
        if (at->left > 1) {
            at->from += at->from_step;
            at->to += at->to_step;
            if (++at->column == at->columns) {
                at->column = 0;
                at->from += at->from_row;
                at->to += at->to_row;
            }
        }
        at->left--;
    }
}

/* Zeros for `channels` channels of all pixels, `apart` from one another. */
static inline void ag_clear_pixels(ag_place at, int32_t channels, ptrdiff_t apart) {
    ag_pixels pixels;
    while (at.left > 0) {
        ag_next_pixels(&pixels, &at);
        for (int32_t i = 0; i < pixels.count; i++) {
            for (int32_t k = 0; k < channels; k++) {
                pixels.to[i][k * apart] = 0.0f;
            }
        }
    }
}

#endif
