/* Average pooling and its adjoint in tiles of channels (window_sums.h): window sums with the weight 1 / count
 * for all taps. Channels are contiguous, and there are at least AG_CHANNEL_TILE of them.
 *
 *     y[p, q, T] = (1 / count) * sum over valid taps of x[window(p, q), T]     T: a tile of channels */
#include "ag_kernels.h"
#include "tiles/window_sums.h"

/* The extent of a window along one axis that its divisor counts: the elements inside x, or inside x and its
 * padding. */
static inline int32_t ag_counted_extent(const ag_axis *axis, int32_t m, ag_taps inside, int32_t after,
                                        bool padding) {
    const int32_t init = axis->in + m * axis->in_step, end = init + axis->taps;
    return !padding ? inside.count : (end < axis->size + after ? end : axis->size + after) - init;
}

static inline void ag_fill(float channels[AG_CHANNEL_TILE], float value) {
    for (int32_t k = 0; k < AG_CHANNEL_TILE; k++) {
        channels[k] = value;
    }
}

static void ag_avg_pool2d_tiled(const float *x, float *y, int32_t n, const ag_pool2d_shape *s) {
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, 1);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, 1);
    const bool padding = s->count_pad != 0;
    float weight[AG_CHANNEL_TILE];
    ag_image image = {x, s->x_h, s->x_w, weight, 0, 0, y, (ptrdiff_t)s->ow * s->c, s->c, s->c};
    for (; n > 0; n--, image.in += s->x_n, image.out += s->oh * image.out_row) {
        for (int32_t row = 0; row < rows.count; row++) {
            const ag_taps vertical = ag_valid_taps(&rows, row);
            const int32_t height = ag_counted_extent(&rows, row, vertical, s->pad_bottom, padding);
            for (int32_t column = 0, count; column < columns.count; column += count) {
                const ag_taps horizontal = ag_valid_taps(&columns, column);
                const int32_t width = ag_counted_extent(&columns, column, horizontal, s->pad_right, padding);
                count = ag_equal_windows(&columns, column, horizontal);
                ag_fill(weight, 1.0f / (float)(s->divisor != 0 ? s->divisor : height * width));
                ag_window_sums_run(&image, &rows, &columns, row, column, vertical, horizontal, count);
            }
        }
    }
}

/* For windows that all have the same divisor: none extends past an edge of x. */
static void ag_avg_pool2d_dx_tiled(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *s) {
    float weight[AG_CHANNEL_TILE];
    ag_image image = {dy, (ptrdiff_t)s->ow * s->c, s->c, weight, 0, 0, dx, s->x_h, s->x_w, s->c};
    ag_fill(weight, 1.0f / (float)(s->divisor != 0 ? s->divisor : s->kh * s->kw));
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

void AG_SYMBOL(avg_pool2d_f32)(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    ag_avg_pool2d_tiled(x, y, n, shape);
}

void AG_SYMBOL(avg_pool2d_dx_f32)(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape) {
    ag_avg_pool2d_dx_tiled(dy, dx, n, shape);
}
