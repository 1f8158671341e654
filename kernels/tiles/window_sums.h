/* Sums over windows, channel by channel, in tiles of AG_CHANNEL_TILE channels (depthwise_microkernel.h). For
 * each output along an axis the valid taps are known; outputs with the same valid taps are a region, whose
 * rows or columns, whichever are longer, are one call of the micro-kernel each.
 *
 *     columns of outputs:   | 0 | 1 | 2  3  4  5  6 | 7 |     0, 1, 7: padding, one call for all rows but
 *                                                             those at the edges
 *                                                             2 .. 6: all taps inside x, one call per row
 *
 *     channels: [tile 0][tile 1][tile 2]
 *                            [tile 3]      the last tile is shifted back inside and overlaps its neighbour */
#ifndef AG_TILES_WINDOW_SUMS_H
#define AG_TILES_WINDOW_SUMS_H

#include "tiles/depthwise_microkernel.h"
#include "tiles/helpers.h"
#include "tiles/tap_ranges.h"

#include <stdbool.h>
#include <stddef.h>

/* An image whose channels are contiguous; row, pixel and weight strides in elements. */
typedef struct {
    const float *in;
    ptrdiff_t in_row, in_pixel;
    const float *w;
    ptrdiff_t w_row, w_tap; /* 0: all channels and taps share AG_CHANNEL_TILE weights */
    float *out;
    ptrdiff_t out_row, out_pixel;
    int32_t channels;
} ag_image;

static const float ag_zero_channels[AG_CHANNEL_TILE] = {0};

/* The first channel of the next tile; the last tile is shifted back, or, with AG_GENERAL_TILES, has fewer
 * channels.
 */
static inline int32_t ag_next_channel_tile(int32_t channel, int32_t channels) {
    const int32_t next = channel + AG_CHANNEL_TILE, last = channels - AG_CHANNEL_TILE;
    return AG_GENERAL_TILES ? ag_min(next, channels) : channel < last && next > last ? last : next;
}

/* `blocks` blocks of k-runs, such as the images, whose products are this many elements apart. */
static inline void ag_set_depthwise_tile(ag_depthwise_tile *s, int32_t channels, int32_t blocks,
                                         ptrdiff_t a_block, ptrdiff_t b_block) {
    if (AG_GENERAL_TILES) {
        s->channels = ag_min(channels, AG_CHANNEL_TILE);
        s->k_blocks = blocks;
        s->a_block = a_block * (ptrdiff_t)sizeof(float);
        s->b_block = b_block * (ptrdiff_t)sizeof(float);
    }
}

/* ag_sum_run computes a run of outputs, from `out` on: s has all but operands, result and channels.
 * ag_zero_run completes `count` outputs without valid taps, `next` apart. Each file that includes this one
 * defines both, or includes channel_sums.h. */
static void ag_sum_run(const ag_image *image, ag_depthwise_tile *s, const float *in, const float *w,
                       float *out);
static void ag_zero_run(const ag_image *image, float *out, ptrdiff_t next, int32_t count);

/* `count` adjacent outputs from [row, column] on, along either axis, that have the same valid taps. */
static void ag_window_sums_run(const ag_image *image, const ag_axis *rows, const ag_axis *columns,
                               int32_t row, int32_t column, ag_tap_range vertical, ag_tap_range horizontal,
                               int32_t count, bool along_rows) {
    const int32_t height = vertical.last - vertical.first, width = horizontal.last - horizontal.first;
    ag_depthwise_tile s;
    const float *in = image->in, *w = image->w;
    float *out = image->out + (rows->out + row * rows->out_step) * image->out_row +
                 (columns->out + column * columns->out_step) * image->out_pixel;
    const ptrdiff_t out_next =
        along_rows ? rows->out_step * image->out_row : columns->out_step * image->out_pixel;
    if (height <= 0 || width <= 0) {
        ag_zero_run(image, out, out_next, count);
        return;
    }
    in += (rows->in + row * rows->in_step + vertical.first * rows->in_tap) * image->in_row;
    in += (columns->in + column * columns->in_step + horizontal.first * columns->in_tap) * image->in_pixel;
    w += (rows->w + vertical.first * rows->w_tap) * image->w_row;
    w += (columns->w + horizontal.first * columns->w_tap) * image->w_tap;
    s.k = width;
    s.k_runs = height;
    s.a_step = ag_bytes(columns->in_tap * image->in_pixel);
    s.b_step = ag_bytes(columns->w_tap * image->w_tap);
    s.a_skip = ag_bytes(rows->in_tap * image->in_row);
    s.b_skip = ag_bytes(rows->w_tap * image->w_row);
    if (along_rows) { /* a run of products is along a run of outputs, where pixels may be shared */
        const int32_t a_step = s.a_step, b_step = s.b_step;
        s.k = height;
        s.k_runs = width;
        s.a_step = s.a_skip;
        s.b_step = s.b_skip;
        s.a_skip = a_step;
        s.b_skip = b_step;
    }
    s.a_skip -= s.k * s.a_step;
    s.b_skip -= s.k * s.b_step;
    s.a_next = ag_bytes(along_rows ? rows->in_step * image->in_row : columns->in_step * image->in_pixel);
    s.c_next = ag_bytes(out_next);
    s.init = ag_zero_channels;
    s.count = count;
    ag_sum_run(image, &s, in, w, out);
}

/* Every output of two axes, region by region; the runs are along the longer side of a region. */
static void ag_window_sums(const ag_image *image, const ag_axis *rows, const ag_axis *columns) {
    ag_tap_range vertical, horizontal;
    for (vertical.end = 0; vertical.end < rows->count;) {
        vertical = ag_axis_range(rows, vertical.end);
        for (horizontal.end = 0; horizontal.end < columns->count;) {
            horizontal = ag_axis_range(columns, horizontal.end);
            const int32_t height = vertical.end - vertical.begin, width = horizontal.end - horizontal.begin;
            const bool along_rows = height > width;
            const int32_t runs = along_rows ? width : height, count = along_rows ? height : width;
            for (int32_t i = 0; i < runs; i++) {
                ag_window_sums_run(image, rows, columns, vertical.begin + (along_rows ? 0 : i),
                                   horizontal.begin + (along_rows ? i : 0), vertical, horizontal, count,
                                   along_rows);
            }
        }
    }
}

#endif
