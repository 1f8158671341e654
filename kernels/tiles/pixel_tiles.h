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

/* Position in a region of each of several images: where the next pixel is read and where its result is
 * stored, and the number of pixels that remain. Distances are from pixel to pixel of a row (step) and from
 * the end of a row to the next one (row). At the end of an image, the distance to the next image (image) is
 * added. */
typedef struct {
    const float *src;
    float *dst;
    ptrdiff_t src_step, src_row, src_image, dst_step, dst_row, dst_image;
    int32_t column, columns, row, rows, remaining;
} ag_pixel_cursor;

/* The pixels of a tile; entries past `count` repeat the last pixel. */
typedef struct {
    const float *src[AG_TILE_M];
    float *dst[AG_TILE_M];
    int32_t count;
    bool constant_stride; /* of the results: all in one row, or rows and images follow each other without a
                             gap */
} ag_pixel_tile;

/* Sets the position to the first of `rows` x `columns` pixels of `images` images. The other fields are set.
 */
static inline void ag_begin_pixels(ag_pixel_cursor *cursor, int32_t images, int32_t rows, int32_t columns) {
    cursor->column = cursor->row = 0;
    cursor->remaining = images * rows * columns;
    cursor->columns = columns;
    cursor->rows = rows;
    if (cursor->src_row == 0 && cursor->dst_row == 0) { /* one long row */
        cursor->columns *= rows;
        cursor->rows = 1;
        if (cursor->src_image == 0 && cursor->dst_image == 0) {
            cursor->columns *= images;
        }
    }
}

static inline void ag_next_pixel(ag_pixel_cursor *cursor) {
    cursor->src += cursor->src_step;
    cursor->dst += cursor->dst_step;
    if (++cursor->column == cursor->columns) {
        cursor->column = 0;
        cursor->src += cursor->src_row;
        cursor->dst += cursor->dst_row;
        if (++cursor->row == cursor->rows) {
            cursor->row = 0;
            cursor->src += cursor->src_image;
            cursor->dst += cursor->dst_image;
        }
    }
}

static AG_NOINLINE void ag_next_pixel_tile(ag_pixel_tile *pixels, ag_pixel_cursor *cursor) {
    pixels->count = cursor->remaining < AG_TILE_M ? cursor->remaining : AG_TILE_M;
    pixels->constant_stride =
        cursor->column + AG_TILE_M <= cursor->columns ||
        (cursor->dst_row == 0 && pixels->count == AG_TILE_M &&
         (cursor->dst_image == 0 ||
          cursor->column + AG_TILE_M <= (cursor->rows - cursor->row) * cursor->columns));
    if (cursor->column + AG_TILE_M < cursor->columns) {
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            pixels->src[i] = cursor->src;
            pixels->dst[i] = cursor->dst;
            cursor->src += cursor->src_step;
            cursor->dst += cursor->dst_step;
        }
        cursor->column += AG_TILE_M;
        cursor->remaining -= AG_TILE_M;
        return;
    }
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        pixels->src[i] = cursor->src;
        pixels->dst[i] = cursor->dst;
        if (cursor->remaining > 1) {
            ag_next_pixel(cursor);
        }
        cursor->remaining--;
    }
}

/* A tile that is computed into a local array: channels k, ..., `stride` apart. Channels before `overlap` are
 * already stored; channels from `end` on are not needed. */
static AG_NOINLINE void ag_edge_tile(ag_microkernel_fn *kernel, ag_tile *t, const ag_pixel_tile *pixels,
                                     int32_t k, int32_t overlap, int32_t end, ptrdiff_t stride) {
    const float beta = t->beta;
    float sums[AG_TILE_M][AG_TILE_N];
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    kernel(t);
    t->beta = beta;
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t j = overlap; j < end; j++) {
            float *dst = pixels->dst[i] + (k + j) * stride;
            *dst = beta == 0.0f ? sums[i][j] : sums[i][j] + *dst;
        }
    }
}

/* The tiles of a row but the last one, with all of their channels, of one k-run or of a k-run for each row of
 * the window: runs of `kernel`, whose operands b are set by ag_set_columns. Channels that fill no tile are
 * computed with some of the channels before. t has all but b, a and c; beta is 0. */
static AG_NOINLINE void ag_row_tiles(ag_microkernel_fn *kernel, ag_tile *t, ag_pixel_cursor *cursor,
                                     int32_t channels, const float *b, ptrdiff_t b_column, int32_t pointers) {
    const int32_t tiles = (cursor->columns - 1 - cursor->column) / AG_TILE_M;
    if (channels < AG_TILE_N || tiles == 0) {
        return;
    }
    t->c_step = ag_bytes(cursor->dst_step);
    for (int32_t k = 0, end = channels - channels % AG_TILE_N; k < channels; k = end, end = channels) {
        k = ag_min(k, channels - AG_TILE_N);
        ag_set_tile_run(t, end - k, b + k * b_column, b_column, pointers);
        t->c = cursor->dst + k;
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            t->a[i] = cursor->src + i * cursor->src_step;
        }
        for (int32_t left = tiles; left > 0; left--) {
            kernel(t);
            t->c += AG_TILE_M * cursor->dst_step;
            for (int32_t i = 0; i < AG_TILE_M; i++) {
                t->a[i] += AG_TILE_M * cursor->src_step;
            }
        }
    }
    cursor->src = t->a[0];
    cursor->dst += (ptrdiff_t)tiles * AG_TILE_M * cursor->dst_step;
    cursor->column += tiles * AG_TILE_M;
    cursor->remaining -= tiles * AG_TILE_M;
    ag_one_tile(t);
}

/* Whether the weights of `channels` channels are packed, AG_PANEL_COLUMNS at a time, for the pixels that
 * remain. */
static inline bool ag_packs(const ag_pixel_cursor *cursor, int32_t channels, const float *panel) {
    return panel != NULL && cursor->remaining >= AG_PANEL_PIXELS && channels % AG_PANEL_COLUMNS == 0;
}

/* AG_PANEL_COLUMNS channels, from `channel` on, of all pixels of a region, at whose beginning the cursor is.
 * t has all but a, b and c. */
static AG_NOINLINE void ag_panel_pixels(ag_tile *t, const ag_pixel_cursor *cursor, int32_t channel,
                                        const float *panel) {
    int32_t row = 0;
    t->a[0] = cursor->src;
    t->b[0] = panel;
    t->c = cursor->dst + channel;
    t->a_step = ag_bytes(cursor->src_step);
    t->c_step = ag_bytes(cursor->dst_step);
    t->run = cursor->columns;
    for (int32_t remaining = cursor->remaining; remaining > 0; remaining -= t->run) {
        AG_MICROKERNEL(np)(t);
        t->a[0] += t->run * cursor->src_step + cursor->src_row;
        t->c += t->run * cursor->dst_step + cursor->dst_row;
        if (++row == cursor->rows) {
            row = 0;
            t->a[0] += cursor->src_image;
            t->c += cursor->dst_image;
        }
    }
}

/* Whether `count` pixels of k products in each run are better computed one by one: starting the products of a
 * pixel takes as long as eight of them. */
static inline bool ag_single_pixels(int32_t count, int32_t k) {
    return count * (k + 8) <= AG_TILE_M * k;
}

/* `channels` channels of the pixels of a tile, one by one. A k-run of all filters is a matrix; each row
 * belongs to a channel or, if `transposed`, to a product. */
static AG_NOINLINE void ag_pixels_one_by_one(const ag_tile *t, const ag_pixel_tile *pixels, const float *w,
                                             int32_t lda, int32_t channels, bool transposed) {
    const int32_t floats = (int32_t)sizeof(float);
    for (int32_t i = 0; i < pixels->count; i++) {
        const float *a = t->a[i], *b = w;
        float beta = t->beta, *dst = pixels->dst[i];
        for (int32_t run = 0; run < t->k_runs; run++) {
            if (transposed) {
                AG_SYMBOL(gemv_t_f32)(b, lda, a, dst, t->k, channels, 1.0f, beta, NULL);
            } else {
                AG_SYMBOL(gemv_f32)(b, lda, a, dst, channels, t->k, 1.0f, beta, NULL);
            }
            a += t->k + t->a_skip / floats;
            b += (t->k * t->b_step + t->b_skip) / floats;
            beta = 1.0f;
        }
    }
}

/* The next pixels and their results as operands of a micro-kernel: full tiles of one row, or a tile that
 * continues in the next row. */
static inline void ag_next_pixels(ag_tile *t, ag_pixel_tile *pixels, ag_pixel_cursor *cursor) {
    const int32_t left = cursor->columns - cursor->column;
    const int32_t run = left == cursor->remaining ? left : left - left % AG_TILE_M;
    if (run == 0) {
        ag_next_pixel_tile(pixels, cursor);
        for (int32_t i = 0; i < pixels->count; i++) {
            t->a[i] = pixels->src[i];
        }
        t->rows = pixels->count;
        t->c_rows = pixels->dst;
        return;
    }
    t->a[0] = cursor->src;
    t->c = cursor->dst;
    t->a_row = ag_bytes(cursor->src_step);
    t->c_step = ag_bytes(cursor->dst_step);
    t->rows = run;
    t->c_rows = NULL;
    cursor->remaining -= run;
    if (cursor->remaining > 0) {
        cursor->src += (run - 1) * cursor->src_step;
        cursor->dst += (run - 1) * cursor->dst_step;
        cursor->column += run - 1;
        ag_next_pixel(cursor);
    }
}

/* Stores zeros to `channels` channels, `stride` apart, of all remaining pixels. */
static AG_NOINLINE void ag_zero_pixels(ag_pixel_cursor *cursor, int32_t channels, ptrdiff_t stride) {
    for (; cursor->remaining > 0; cursor->remaining--) {
        for (int32_t k = 0; k < channels; k++) {
            cursor->dst[k * stride] = 0.0f;
        }
        if (cursor->remaining > 1) {
            ag_next_pixel(cursor);
        }
    }
}

#endif
