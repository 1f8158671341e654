/* Average pooling and its adjoint in tiles of channels (window_sums.h): window sums with the weight 1 / count
 * for all taps. Channels are contiguous.
 *
 *     y[p, q, T] = (1 / count) * sum over valid taps of x[window(p, q), T]     T: a tile of channels
 *
 * Few channels are added up window by window. */
#include "ag_kernels.h"
#include "tiles/channel_sums.h"
#include "tiles/zero_image.h"

enum { AG_FEW_CHANNELS = 8 }; /* from which on tiles are worth their calls */

/* The extent of a window along one axis that its divisor counts: the elements inside x, or inside x and its
 * padding. */
static inline int32_t ag_counted_extent(const ag_axis *axis, int32_t m, ag_tap_range inside, int32_t after,
                                        bool padding) {
    const int32_t init = axis->in + m * axis->in_step, end = init + axis->taps;
    return !padding ? inside.last - inside.first
                    : (end < axis->size + after ? end : axis->size + after) - init;
}

static inline void ag_fill_channels(float channels[AG_CHANNEL_TILE], float value) {
    for (int32_t k = 0; k < AG_CHANNEL_TILE; k++) {
        channels[k] = value;
    }
}

/* y of one window of few channels, whose first valid element is at x. */
static inline void ag_average(const float *x, float *y, int32_t rows, int32_t columns, float weight,
                              const ag_pool2d_shape *s) {
    float sums[AG_FEW_CHANNELS] = {0.0f};
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < columns; j++) {
            const float *pixel = x + (ptrdiff_t)i * s->x_h + (ptrdiff_t)j * s->x_w;
            for (int32_t k = 0; k < s->c; k++) {
                sums[k] += pixel[k];
            }
        }
    }
    for (int32_t k = 0; k < s->c; k++) {
        y[k] = weight * sums[k];
    }
}

void AG_SYMBOL(avg_pool2d_f32)(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, 1);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, 1);
    const bool padding = s->count_pad != 0;
    float weight[AG_CHANNEL_TILE];
    ag_image image = {x, s->x_h, s->x_w, weight, 0, 0, y, (ptrdiff_t)s->ow * s->c, s->c, s->c};
    for (; n > 0; n--, image.in += s->x_n, image.out += s->oh * image.out_row) {
        for (int32_t row = 0; row < rows.count; row++) {
            const ag_tap_range vertical = ag_axis_range(&rows, row);
            const int32_t height = ag_counted_extent(&rows, row, vertical, s->pad_bottom, padding);
            for (int32_t column = 0, count; column < columns.count; column += count) {
                const ag_tap_range horizontal = ag_axis_range(&columns, column);
                const int32_t width = ag_counted_extent(&columns, column, horizontal, s->pad_right, padding);
                count = horizontal.end - column;
                ag_fill_channels(weight, 1.0f / (float)(s->divisor != 0 ? s->divisor : height * width));
                if (s->c < AG_FEW_CHANNELS) {
                    const float *first =
                        image.in + (ptrdiff_t)(rows.in + row * rows.in_step + vertical.first) * s->x_h +
                        (ptrdiff_t)(columns.in + column * columns.in_step + horizontal.first) * s->x_w;
                    float *dst = image.out + row * image.out_row + (ptrdiff_t)column * s->c;
                    for (int32_t q = 0; q < count; q++, dst += s->c) {
                        ag_average(first + (ptrdiff_t)q * columns.in_step * s->x_w, dst,
                                   vertical.last - vertical.first, horizontal.last - horizontal.first,
                                   weight[0], s);
                    }
                    continue;
                }
                ag_window_sums_run(&image, &rows, &columns, row, column, vertical, horizontal, count, false);
            }
        }
    }
}

/* For windows that all have the same divisor: none extends past an edge of x. Few channels. */
static void ag_avg_pool2d_dx_few(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *s) {
    const float weight = 1.0f / (float)(s->divisor != 0 ? s->divisor : s->kh * s->kw);
    for (; n > 0; n--, dx += s->x_n) {
        ag_zero_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->c) {
                for (int32_t i = 0; i < s->kh; i++) {
                    for (int32_t j = 0; j < s->kw; j++) {
                        float *pixel = dx + (ptrdiff_t)(p * s->stride_h + i) * s->x_h +
                                       (ptrdiff_t)(q * s->stride_w + j) * s->x_w;
                        for (int32_t k = 0; k < s->c; k++) {
                            pixel[k] += weight * dy[k];
                        }
                    }
                }
            }
        }
    }
}

/* The same in tiles. */
static void ag_avg_pool2d_dx_tiled(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *s) {
    float weight[AG_CHANNEL_TILE];
    ag_image image = {dy, (ptrdiff_t)s->ow * s->c, s->c, weight, 0, 0, dx, s->x_h, s->x_w, s->c};
    ag_fill_channels(weight, 1.0f / (float)(s->divisor != 0 ? s->divisor : s->kh * s->kw));
    for (; n > 0; n--, image.in += s->oh * image.in_row, image.out += s->x_n) {
        for (int32_t i = 0; i < s->stride_h; i++) {
            const ag_axis rows = ag_adjoint_axis(i, s->h, s->oh, s->kh, s->stride_h, 0, 1);
            for (int32_t j = 0; j < s->stride_w; j++) {
                const ag_axis columns = ag_adjoint_axis(j, s->w, s->ow, s->kw, s->stride_w, 0, 1);
                ag_window_sums(&image, &rows, &columns);
            }
        }
    }
}

void AG_SYMBOL(avg_pool2d_dx_f32)(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape) {
    (shape->c < AG_FEW_CHANNELS ? ag_avg_pool2d_dx_few : ag_avg_pool2d_dx_tiled)(dy, dx, n, shape);
}
