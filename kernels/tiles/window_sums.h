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

#include <stdbool.h>
#include <stddef.h>

/* One axis of some of the outputs: output m of `count`, stored at out + m * out_step, is the sum over taps t
 * of the input's element in + m * in_step + t * in_tap with weight w + t * w_tap. Elements outside the
 * input's `size` elements count as 0. */
typedef struct {
    int32_t out, out_step, count;
    int32_t in, in_step, in_tap, size;
    int32_t w, w_tap, taps;
} ag_axis;

/* The valid taps of one output. */
typedef struct {
    int32_t first, count;
} ag_taps;

static inline bool ag_tap_is_inside(const ag_axis *axis, int32_t m, int32_t tap) {
    const int32_t position = axis->in + m * axis->in_step + tap * axis->in_tap;
    return position >= 0 && position < axis->size;
}

static ag_taps ag_valid_taps(const ag_axis *axis, int32_t m) {
    ag_taps taps = {0, axis->taps};
    while (taps.count > 0 && !ag_tap_is_inside(axis, m, taps.first)) {
        taps.first++;
        taps.count--;
    }
    while (taps.count > 0 && !ag_tap_is_inside(axis, m, taps.first + taps.count - 1)) {
        taps.count--;
    }
    return taps;
}

/* The number of outputs from m on that have the same valid taps. */
static int32_t ag_equal_windows(const ag_axis *axis, int32_t m, ag_taps taps) {
    int32_t end = m + 1;
    if (taps.count == axis->taps && taps.count > 0) {
        const int32_t last = axis->in + (axis->in_tap > 0 ? (axis->taps - 1) * axis->in_tap : 0);
        end = (axis->size - 1 - last) / axis->in_step + 1;
        return (end < axis->count ? end : axis->count) - m;
    }
    while (end < axis->count) {
        const ag_taps next = ag_valid_taps(axis, end);
        if (next.first != taps.first || next.count != taps.count) {
            break;
        }
        end++;
    }
    return end - m;
}

/* The axis of a convolution or of pooling. */
static inline ag_axis ag_forward_axis(int32_t outputs, int32_t size, int32_t taps, int32_t stride,
                                      int32_t pad, int32_t dilation) {
    return (ag_axis){0, 1, outputs, -pad, stride, dilation, size, 0, 1, taps};
}

/* Its adjoint: phase `phase` of `stride`, the elements of x that are reached by the same taps, the last tap
 * first. */
static inline ag_axis ag_adjoint_axis(int32_t phase, int32_t outputs, int32_t size, int32_t taps,
                                      int32_t stride, int32_t pad, int32_t dilation) {
    ag_axis axis = {phase, stride, (outputs - phase + stride - 1) / stride, 0, 1, 0, size, 0, 1, 0};
    for (int32_t tap = taps - 1; tap >= 0; tap--) {
        const int32_t position = phase + pad - tap * dilation;
        if (position % stride == 0) {
            if (axis.taps == 0) {
                axis.w = tap;
                axis.in = position / stride;
            } else if (axis.taps == 1) {
                axis.w_tap = tap - axis.w;
                axis.in_tap = position / stride - axis.in;
            }
            axis.taps++;
        }
    }
    return axis;
}

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
#if AG_GENERAL_TILES
    return channel + AG_CHANNEL_TILE < channels ? channel + AG_CHANNEL_TILE : channels;
#else
    const int32_t next = channel + AG_CHANNEL_TILE, last = channels - AG_CHANNEL_TILE;
    return channel < last && next > last ? last : next;
#endif
}

/* `blocks` blocks of k-runs, such as the images, whose products are this many elements apart. */
static inline void ag_set_depthwise_tile(ag_depthwise_tile *s, int32_t channels, int32_t blocks,
                                         ptrdiff_t a_block, ptrdiff_t b_block) {
#if AG_GENERAL_TILES
    s->channels = channels < AG_CHANNEL_TILE ? channels : AG_CHANNEL_TILE;
    s->k_blocks = blocks;
    s->a_block = a_block * (ptrdiff_t)sizeof(float);
    s->b_block = b_block * (ptrdiff_t)sizeof(float);
#else
    (void)s, (void)channels, (void)blocks, (void)a_block, (void)b_block;
#endif
}

/* `count` adjacent outputs from [row, column] on, along either axis, that have the same valid taps. */
static void ag_window_sums_run(const ag_image *image, const ag_axis *rows, const ag_axis *columns,
                               int32_t row, int32_t column, ag_taps vertical, ag_taps horizontal,
                               int32_t count, bool along_rows) {
    ag_depthwise_tile s;
    const float *in = image->in, *w = image->w;
    float *out = image->out + (rows->out + row * rows->out_step) * image->out_row +
                 (columns->out + column * columns->out_step) * image->out_pixel;
    const ptrdiff_t out_next =
        along_rows ? rows->out_step * image->out_row : columns->out_step * image->out_pixel;
    if (vertical.count == 0 || horizontal.count == 0) {
        for (; count > 0; count--, out += out_next) {
            for (int32_t k = 0; k < image->channels; k++) {
                out[k] = 0.0f;
            }
        }
        return;
    }
    in += (rows->in + row * rows->in_step + vertical.first * rows->in_tap) * image->in_row;
    in += (columns->in + column * columns->in_step + horizontal.first * columns->in_tap) * image->in_pixel;
    w += (rows->w + vertical.first * rows->w_tap) * image->w_row;
    w += (columns->w + horizontal.first * columns->w_tap) * image->w_tap;
    s.k = horizontal.count;
    s.k_runs = vertical.count;
    s.a_step = ag_bytes(columns->in_tap * image->in_pixel);
    s.b_step = ag_bytes(columns->w_tap * image->w_tap);
    s.a_skip = ag_bytes(rows->in_tap * image->in_row);
    s.b_skip = ag_bytes(rows->w_tap * image->w_row);
    if (along_rows) { /* a run of products is along a run of outputs, where pixels may be shared */
        const int32_t a_step = s.a_step, b_step = s.b_step;
        s.k = vertical.count;
        s.k_runs = horizontal.count;
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
    for (int32_t k = 0; k < image->channels; k = ag_next_channel_tile(k, image->channels)) {
        s.a = in + k;
        s.b = image->w_tap == 0 ? w : w + k;
        s.c = out + k;
        ag_set_depthwise_tile(&s, image->channels - k, 1, 0, 0);
        AG_DEPTHWISE_MICROKERNEL(&s);
    }
}

/* Every output of two axes, region by region; the runs are along the longer side of a region. */
static void ag_window_sums(const ag_image *image, const ag_axis *rows, const ag_axis *columns) {
    for (int32_t row = 0, height; row < rows->count; row += height) {
        const ag_taps vertical = ag_valid_taps(rows, row);
        height = ag_equal_windows(rows, row, vertical);
        for (int32_t column = 0, width; column < columns->count; column += width) {
            const ag_taps horizontal = ag_valid_taps(columns, column);
            width = ag_equal_windows(columns, column, horizontal);
            const bool along_rows = height > width;
            const int32_t runs = along_rows ? width : height, count = along_rows ? height : width;
            for (int32_t i = 0; i < runs; i++) {
                ag_window_sums_run(image, rows, columns, along_rows ? row : row + i,
                                   along_rows ? column + i : column, vertical, horizontal, count, along_rows);
            }
        }
    }
}

#endif
