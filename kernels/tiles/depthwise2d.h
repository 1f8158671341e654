/* Depthwise convolution and its gradients over blocks of channels (windows.h). Channels lie side by side, and
 * there are AG_LANES of them or more. */
#ifndef AG_TILES_DEPTHWISE2D_H
#define AG_TILES_DEPTHWISE2D_H

#include "ag_shapes.h"
#include "tiles/window_sums.h"

static void ag_depthwise2d_tiled(const float *x, const float *w, float *y, int32_t n,
                                 const ag_conv2d_shape *s) {
    const ag_axis rows = ag_forward(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    ag_image image = {x,      s->x_h, s->x_w, w, (ptrdiff_t)s->kw * s->c, s->c, y, (ptrdiff_t)s->ow * s->ldy,
                      s->ldy, s->c};
    for (; n > 0; n--, image.in += s->x_n, image.out += s->oh * image.out_row) {
        ag_windows(&image, &rows, &columns);
    }
}

static void ag_depthwise2d_dx_tiled(const float *dy, const float *w, float *dx, int32_t n,
                                    const ag_conv2d_shape *s) {
    ag_image image = {
        dy, (ptrdiff_t)s->ow * s->ldy, s->ldy, w, (ptrdiff_t)s->kw * s->c, s->c, dx, s->x_h, s->x_w, s->c};
    for (; n > 0; n--, image.in += s->oh * image.in_row, image.out += s->x_n) {
        for (int32_t i = 0; i < s->stride_h; i++) {
            const ag_axis rows = ag_adjoint(i, s->h, s->oh, s->kh, s->stride_h, s->pad_top, s->dilation_h);
            for (int32_t j = 0; j < s->stride_w; j++) {
                const ag_axis columns =
                    ag_adjoint(j, s->w, s->ow, s->kw, s->stride_w, s->pad_left, s->dilation_w);
                ag_windows(&image, &rows, &columns);
            }
        }
    }
}

/* The outputs whose tap is inside, and the first element that it meets. */
typedef struct {
    int32_t first, count, at;
} ag_met;

static ag_met ag_outputs_of(int32_t tap, const ag_axis *axis) {
    ag_met met = {0, axis->count, 0};
    while (met.count > 0 && !ag_inside(axis, met.first, tap)) {
        met.first++;
        met.count--;
    }
    while (met.count > 0 && !ag_inside(axis, met.first + met.count - 1, tap)) {
        met.count--;
    }
    met.at = axis->in + met.first * axis->in_step + tap * axis->in_tap;
    return met;
}

/* The gradient of one tap of AG_LANES channels: the sum over the images of those outputs. */
static void ag_tap_sum(const float *x, const float *dy, float sums[AG_CHANNEL_TILE], int32_t n, ag_met down,
                       ag_met across, const ag_conv2d_shape *s) {
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy;
    ag_depthwise_tile sum;
    if (down.count == 0 || across.count == 0) {
        for (int32_t k = 0; k < AG_CHANNEL_TILE; k++) {
            sums[k] = 0.0f;
        }
        return;
    }
    sum.k = across.count;
    sum.k_runs = down.count;
    sum.a_step = ag_bytes((ptrdiff_t)s->stride_w * s->x_w);
    sum.b_step = ag_bytes(s->ldy);
    sum.a_skip = ag_bytes((ptrdiff_t)s->stride_h * s->x_h) - sum.k * sum.a_step;
    sum.b_skip = ag_bytes(dy_row) - sum.k * sum.b_step;
    sum.a = x + (ptrdiff_t)down.at * s->x_h + (ptrdiff_t)across.at * s->x_w;
    sum.b = dy + down.first * dy_row + (ptrdiff_t)across.first * s->ldy;
    sum.start = ag_zero_channels;
    sum.c = sums;
    sum.count = 1;
    sum.a_next = sum.c_next = 0;
    for (; n > 0; n--, sum.a += s->x_n, sum.b += s->oh * dy_row) {
        AG_DEPTHWISE_MICROKERNEL(&sum);
        sum.start = sums;
    }
}

static void ag_depthwise2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                                    const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_axis rows = ag_forward(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    float sums[AG_CHANNEL_TILE];
    for (int32_t i = 0; i < s->kh; i++) {
        const ag_met down = ag_outputs_of(i, &rows);
        for (int32_t j = 0; j < s->kw; j++, dw += s->c) {
            const ag_met across = ag_outputs_of(j, &columns);
            for (int32_t k = 0, done = 0; k < s->c; k = ag_next_block(k, s->c)) {
                ag_tap_sum(x + k, dy + k, sums, n, down, across, s);
                for (; done < k + AG_CHANNEL_TILE; done++) {
                    const float sum = sums[done - k];
                    dw[done] = beta == 0.0f ? alpha * sum : alpha * sum + beta * dw[done];
                }
            }
        }
    }
}

#endif
