/* im2col for windows whose elements are not contiguous in x, in chunks of at most AG_IM2COL_MAX elements:
 *
 *     window (rows x row_length)          packed[pixel][0 .. AG_IM2COL_MAX)
 *     +-----------+
 *     | c c c c c |   chunk 0: whole rows, or a piece of one row where a row is longer than a chunk
 *     | c c c c c |
 *     | d d d d d |   chunk 1, added to the result of chunk 0
 *     +-----------+ */
#ifndef AG_TILES_IM2COL_H
#define AG_TILES_IM2COL_H

#include "tiles/conv2d_group.h"

#ifndef AG_IM2COL_MAX
#define AG_IM2COL_MAX 18 /* elements of a window that are packed at a time */
#endif

/* The current chunk of a window of rows * row_length elements: `length` elements from `column` on, of each of
 * `row_count` rows from `row` on. */
typedef struct {
    int32_t rows, row_length, row, row_count, column, length;
} ag_im2col_chunk;

static inline ag_im2col_chunk ag_im2col_begin(int32_t rows, int32_t row_length) {
    ag_im2col_chunk p;
    p.rows = rows;
    p.row_length = p.length = row_length;
    p.row = p.row_count = p.column = 0;
    return p;
}

static inline bool ag_im2col_next(ag_im2col_chunk *p) {
    p->column += p->length;
    if (p->column >= p->row_length) {
        p->row += p->row_count;
        p->column = 0;
    }
    if (p->row >= p->rows) {
        return false;
    }
    if (p->row_length <= AG_IM2COL_MAX) {
        const int32_t fit = AG_IM2COL_MAX / p->row_length, remaining = p->rows - p->row;
        p->row_count = fit < remaining ? fit : remaining;
    } else {
        const int32_t chunks = (p->row_length + AG_IM2COL_MAX - 1) / AG_IM2COL_MAX,
                      limit = (p->row_length + chunks - 1) / chunks;
        p->row_count = 1;
        p->length = p->row_length - p->column < limit ? p->row_length - p->column : limit;
    }
    return true;
}

/* Offsets of a chunk's elements from the start of the window. In the packed buffer the channels are
 * contiguous. */
static void ag_im2col_offsets(ptrdiff_t offsets[AG_IM2COL_MAX], const ag_im2col_chunk *chunk,
                              const ag_conv2d_group *g) {
    const ptrdiff_t row_step = (ptrdiff_t)g->s->dilation_h * g->s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    for (int32_t row = chunk->row; row < chunk->row + chunk->row_count; row++) {
        int32_t tap = chunk->column / g->channels, channel = chunk->column % g->channels;
        for (int32_t i = 0; i < chunk->length; i++) {
            *offsets++ = row * row_step + tap * tap_step + (ptrdiff_t)channel * g->s->x_c;
            if (++channel == g->channels) {
                channel = 0;
                tap++;
            }
        }
    }
}

/* Packs `count` elements of each window at x. */
static inline void ag_im2col(float packed[AG_TILE_M][AG_IM2COL_MAX], const float *const x[AG_TILE_M],
                             const ptrdiff_t offsets[AG_IM2COL_MAX], int32_t count) {
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        const float *src = x[i];
        float *dst = packed[i];
        for (int32_t j = 0; j < count; j++) {
            dst[j] = src[offsets[j]];
        }
    }
}

#endif
