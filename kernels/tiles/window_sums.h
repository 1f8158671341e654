/* Sums over windows, channel by channel, from blocks of AG_LANES channels (lanes.h). Of each axis it is known
 * which elements of the input each output takes in; runs of outputs that take in as many go to the backend at
 * once. A block that would reach over the last channel is moved back inside. */
#ifndef AG_TILES_WINDOW_SUMS_H
#define AG_TILES_WINDOW_SUMS_H

#include "tiles/depthwise_microkernel.h"

#include <stdbool.h>
#include <stddef.h>

/* One axis of some of the outputs: number m of `count`, which is the out + m * out_step-th, is the sum over
 * taps t of the input's element in + m * in_step + t * in_tap with weight w + t * w_tap. What lies outside
 * the input's `size` elements counts as 0. */
typedef struct {
    int32_t out, out_step, count;
    int32_t in, in_step, in_tap, size;
    int32_t w, w_tap, taps;
} ag_axis;

/* The taps of one output that lie in the input. */
typedef struct {
    int32_t first, count;
} ag_taps;

static inline bool ag_inside(const ag_axis *axis, int32_t m, int32_t tap) {
    const int32_t at = axis->in + m * axis->in_step + tap * axis->in_tap;
    return at >= 0 && at < axis->size;
}

static ag_taps ag_taps_of(const ag_axis *axis, int32_t m) {
    ag_taps taps = {0, axis->taps};
    while (taps.count > 0 && !ag_inside(axis, m, taps.first)) {
        taps.first++;
        taps.count--;
    }
    while (taps.count > 0 && !ag_inside(axis, m, taps.first + taps.count - 1)) {
        taps.count--;
    }
    return taps;
}

/* How many outputs from m on take in the same taps. */
static int32_t ag_run(const ag_axis *axis, int32_t m, ag_taps taps) {
    int32_t end = m + 1;
    while (end < axis->count) {
        const ag_taps next = ag_taps_of(axis, end);
        if (next.first != taps.first || next.count != taps.count) {
            break;
        }
        end++;
    }
    return end - m;
}

/* The windows of a convolution, or of pooling, along one axis. */
static inline ag_axis ag_forward(int32_t outputs, int32_t size, int32_t taps, int32_t stride, int32_t pad,
                                 int32_t dilation) {
    return (ag_axis){0, 1, outputs, -pad, stride, dilation, size, 0, 1, taps};
}

/* Its adjoint: number `phase` of the `stride` sets of elements of x whose taps are the same. */
static inline ag_axis ag_adjoint(int32_t phase, int32_t outputs, int32_t size, int32_t taps, int32_t stride,
                                 int32_t pad, int32_t dilation) {
    ag_axis axis = {phase, stride, (outputs - phase + stride - 1) / stride, 0, 1, 0, size, 0, 1, 0};
    for (int32_t tap = 0; tap < taps; tap++) {
        const int32_t at = phase + pad - tap * dilation;
        if (at % stride == 0) {
            if (axis.taps == 0) {
                axis.w = tap;
                axis.in = at / stride;
            } else if (axis.taps == 1) {
                axis.w_tap = tap - axis.w;
                axis.in_tap = at / stride - axis.in;
            }
            axis.taps++;
        }
    }
    return axis;
}

/* An image with its channels side by side; row, pixel and weights in elements. */
typedef struct {
    const float *in;
    ptrdiff_t in_row, in_pixel;
    const float *w;
    ptrdiff_t w_row, w_tap; /* 0: all channels and taps share AG_LANES weights */
    float *out;
    ptrdiff_t out_row, out_pixel;
    int32_t channels;
} ag_image;

static const float ag_zero_channels[AG_CHANNEL_TILE] = {0};

static inline int32_t ag_bytes(ptrdiff_t floats) {
    return (int32_t)(floats * (ptrdiff_t)sizeof(float));
}

/* Where the next block of channels begins; the last one moves back. */
static inline int32_t ag_next_block(int32_t channel, int32_t channels) {
    const int32_t next = channel + AG_CHANNEL_TILE, last = channels - AG_CHANNEL_TILE;
    return channel < last && next > last ? last : next;
}

/* `count` neighbouring outputs from [row, column] on, which take in the same taps. */
static void ag_windows_run(const ag_image *image, const ag_axis *rows, const ag_axis *columns, int32_t row,
                           int32_t column, ag_taps down, ag_taps across, int32_t count) {
    ag_depthwise_tile s;
    const float *in = image->in, *w = image->w;
    float *out = image->out + (rows->out + row * rows->out_step) * image->out_row +
                 (columns->out + column * columns->out_step) * image->out_pixel;
    const ptrdiff_t out_next = columns->out_step * image->out_pixel;
    if (down.count == 0 || across.count == 0) {
        for (; count > 0; count--, out += out_next) {
            for (int32_t k = 0; k < image->channels; k++) {
                out[k] = 0.0f;
            }
        }
        return;
    }
    in += (rows->in + row * rows->in_step + down.first * rows->in_tap) * image->in_row;
    in += (columns->in + column * columns->in_step + across.first * columns->in_tap) * image->in_pixel;
    w += (rows->w + down.first * rows->w_tap) * image->w_row;
    w += (columns->w + across.first * columns->w_tap) * image->w_tap;
    s.k = across.count;
    s.k_runs = down.count;
    s.a_step = ag_bytes(columns->in_tap * image->in_pixel);
    s.b_step = ag_bytes(columns->w_tap * image->w_tap);
    s.a_skip = ag_bytes(rows->in_tap * image->in_row) - s.k * s.a_step;
    s.b_skip = ag_bytes(rows->w_tap * image->w_row) - s.k * s.b_step;
    s.a_next = ag_bytes(columns->in_step * image->in_pixel);
    s.c_next = ag_bytes(out_next);
    s.start = ag_zero_channels;
    s.count = count;
    for (int32_t k = 0; k < image->channels; k = ag_next_block(k, image->channels)) {
        s.a = in + k;
        s.b = image->w_tap == 0 ? w : w + k;
        s.c = out + k;
        AG_DEPTHWISE_MICROKERNEL(&s);
    }
}

/* Every output of two axes. */
static void ag_windows(const ag_image *image, const ag_axis *rows, const ag_axis *columns) {
    for (int32_t row = 0; row < rows->count; row++) {
        const ag_taps down = ag_taps_of(rows, row);
        for (int32_t column = 0, count; column < columns->count; column += count) {
            const ag_taps across = ag_taps_of(columns, column);
            count = ag_run(columns, column, across);
            ag_windows_run(image, rows, columns, row, column, down, across, count);
        }
    }
}

#endif
