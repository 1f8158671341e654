/* Means over windows, and their adjoint, over blocks of channels (windows.h). Channels lie side by side, and
 * there are AG_LANES of them or more. */
#ifndef AG_TILES_AVG_POOL2D_H
#define AG_TILES_AVG_POOL2D_H

#include "ag_shapes.h"
#include "tiles/window_sums.h"

/* What the count of a window is made of along one axis: its elements inside x, or inside x and its padding.
 */
static inline int32_t ag_counted(const ag_axis *axis, int32_t m, ag_taps inside, int32_t after,
                                 bool padding) {
    const int32_t start = axis->in + m * axis->in_step, end = start + axis->taps;
    return !padding ? inside.count : (end < axis->size + after ? end : axis->size + after) - start;
}

static inline void ag_fill(float lanes[AG_CHANNEL_TILE], float value) {
    for (int32_t k = 0; k < AG_CHANNEL_TILE; k++) {
        lanes[k] = value;
    }
}

static void ag_avg_pool2d_tiled(const float *x, float *y, int32_t n, const ag_pool2d_shape *s) {
    const ag_axis rows = ag_forward(s->oh, s->h, s->kh, s->stride_h, s->pad_top, 1);
    const ag_axis columns = ag_forward(s->ow, s->w, s->kw, s->stride_w, s->pad_left, 1);
    const bool padding = s->count_pad != 0;
    float each[AG_CHANNEL_TILE];
    ag_image image = {x, s->x_h, s->x_w, each, 0, 0, y, (ptrdiff_t)s->ow * s->c, s->c, s->c};
    for (; n > 0; n--, image.in += s->x_n, image.out += s->oh * image.out_row) {
        for (int32_t row = 0; row < rows.count; row++) {
            const ag_taps down = ag_taps_of(&rows, row);
            const int32_t high = ag_counted(&rows, row, down, s->pad_bottom, padding);
            for (int32_t column = 0, count; column < columns.count; column += count) {
                const ag_taps across = ag_taps_of(&columns, column);
                const int32_t wide = ag_counted(&columns, column, across, s->pad_right, padding);
                count = ag_run(&columns, column, across);
                ag_fill(each, 1.0f / (float)(s->divisor != 0 ? s->divisor : high * wide));
                ag_windows_run(&image, &rows, &columns, row, column, down, across, count);
            }
        }
    }
}

/* Where every window has the same divisor: none hangs over an edge of x. */
static void ag_avg_pool2d_dx_tiled(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *s) {
    float each[AG_CHANNEL_TILE];
    ag_image image = {dy, (ptrdiff_t)s->ow * s->c, s->c, each, 0, 0, dx, s->x_h, s->x_w, s->c};
    ag_fill(each, 1.0f / (float)(s->divisor != 0 ? s->divisor : s->kh * s->kw));
    for (; n > 0; n--, image.in += s->oh * image.in_row, image.out += s->x_n) {
        for (int32_t i = 0; i < s->stride_h; i++) {
            const ag_axis rows = ag_adjoint(i, s->h, s->oh, s->kh, s->stride_h, 0, 1);
            for (int32_t j = 0; j < s->stride_w; j++) {
                const ag_axis columns = ag_adjoint(j, s->w, s->ow, s->kw, s->stride_w, 0, 1);
                ag_windows(&image, &rows, &columns);
            }
        }
    }
}

#endif
