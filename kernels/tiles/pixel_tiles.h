/* Iterates over the pixels of a rectangular region of an image in tiles of AG_TILE_M pixels (microkernel.h),
 * row by row:
 *
 *     +---------------+
 *     | 0 0 0 0 1 1 1 |      AG_TILE_M = 4: a tile may continue in the next row;
 *     | 1 2 2 2 2 3 3 |      the last tile repeats its last pixel
 *     +---------------+ */
#ifndef AG_TILES_PIXEL_TILES_H
#define AG_TILES_PIXEL_TILES_H

#include "tiles/microkernel.h"

#include <stdbool.h>

/* Position in a region: where the next pixel is read and where its result is stored, the distances from pixel
 * to pixel of a row and from the end of a row to the next one, and the number of pixels that remain. */
typedef struct {
    const float *src;
    float *dst;
    ptrdiff_t src_step, src_row, dst_step, dst_row;
    int32_t column, columns, remaining;
} ag_pixel_cursor;

/* The pixels of a tile; entries past `count` repeat the last pixel. */
typedef struct {
    const float *src[AG_TILE_M];
    float *dst[AG_TILE_M];
    int32_t count;
    bool constant_stride; /* of the results: all in one row, or rows follow each other without a gap */
} ag_pixel_tile;

static inline void ag_next_pixel_tile(ag_pixel_tile *pixels, ag_pixel_cursor *cursor) {
    pixels->count = cursor->remaining < AG_TILE_M ? cursor->remaining : AG_TILE_M;
    pixels->constant_stride =
        cursor->column + AG_TILE_M <= cursor->columns || (cursor->dst_row == 0 && pixels->count == AG_TILE_M);
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        pixels->src[i] = cursor->src;
        pixels->dst[i] = cursor->dst;
        if (cursor->remaining > 1) {
            cursor->src += cursor->src_step;
            cursor->dst += cursor->dst_step;
            if (++cursor->column == cursor->columns) {
                cursor->column = 0;
                cursor->src += cursor->src_row;
                cursor->dst += cursor->dst_row;
            }
        }
        cursor->remaining--;
    }
}

/* Stores zeros to `channels` channels, `stride` apart, of all remaining pixels. */
static inline void ag_zero_pixels(ag_pixel_cursor cursor, int32_t channels, ptrdiff_t stride) {
    ag_pixel_tile pixels;
    while (cursor.remaining > 0) {
        ag_next_pixel_tile(&pixels, &cursor);
        for (int32_t i = 0; i < pixels.count; i++) {
            for (int32_t k = 0; k < channels; k++) {
                pixels.dst[i][k * stride] = 0.0f;
            }
        }
    }
}

#endif
