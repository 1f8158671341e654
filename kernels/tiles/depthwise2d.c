/* Depthwise convolution and its gradients in tiles of channels (window_sums.h). Channels are contiguous, and
 * there are at least AG_CHANNEL_TILE of them.
 *
 *     y, dx:  window sums: one micro-kernel call per run of outputs with the same valid taps
 *     dw:     one tap of one tile T of channels:
 *             dw[tap, T] = sum over pixels of x[pixel + tap, T] * dy[pixel, T]
 *             several taps of a row at once, which share dy: two, with AG_GENERAL_TILES more */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/channel_sums.h"

#include <string.h>

static void ag_depthwise2d_tiled(const float *x, const float *w, float *y, int32_t n,
                                 const ag_conv2d_shape *s) {
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    ag_image image = {x,      s->x_h, s->x_w, w, (ptrdiff_t)s->kw * s->c, s->c, y, (ptrdiff_t)s->ow * s->ldy,
                      s->ldy, s->c};
    for (; n > 0; n--, image.in += s->x_n, image.out += s->oh * image.out_row) {
        ag_window_sums(&image, &rows, &columns);
    }
}

void AG_SYMBOL(depthwise2d_dx_f32)(const float *dy, const float *w, float *dx, int32_t n,
                                   const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    ag_image image = {
        dy, (ptrdiff_t)s->ow * s->ldy, s->ldy, w, (ptrdiff_t)s->kw * s->c, s->c, dx, s->x_h, s->x_w, s->c};
    for (; n > 0; n--, image.in += s->oh * image.in_row, image.out += s->x_n) {
        for (int32_t i = 0; i < s->stride_h; i++) {
            const ag_axis rows =
                ag_adjoint_axis(i, s->h, s->oh, s->kh, s->stride_h, s->pad_top, s->dilation_h);
            for (int32_t j = 0; j < s->stride_w; j++) {
                const ag_axis columns =
                    ag_adjoint_axis(j, s->w, s->ow, s->kw, s->stride_w, s->pad_left, s->dilation_w);
                ag_window_sums(&image, &rows, &columns);
            }
        }
    }
}

/* Adjacent taps of a row of the window, whose sums are computed at once, and the number of these sums: one
 * over the outputs for which all taps are inside x, then for each tap one over the outputs before and one
 * over the outputs after. */
enum { AG_TAPS = AG_GENERAL_TILES ? 8 : 2, AG_TAP_PRODUCTS = 1 + 2 * AG_TAPS };

/* The products of `taps` adjacent taps over outputs first ... end - 1 of the rows `vertical`, whose sums are
 * added to c; x at the first tap. A run is along the longer axis, or the axis along which taps share pixels.
 */
static ag_depthwise_tile ag_tap_products(const float *x, const float *dy, float *c, int32_t taps,
                                         ag_window_range vertical, int32_t first, int32_t end,
                                         const ag_conv2d_shape *s) {
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy;
    const ptrdiff_t x_row = (ptrdiff_t)s->stride_h * s->x_h, x_step = (ptrdiff_t)s->stride_w * s->x_w;
    ag_depthwise_tile t;
    t.k = end - first;
    t.k_runs = vertical.end - vertical.begin;
    t.a_step = ag_bytes(x_step);
    t.b_step = ag_bytes(s->ldy);
    t.a_skip = ag_bytes(x_row);
    t.b_skip = ag_bytes(dy_row);
    t.a_next = ag_bytes((ptrdiff_t)s->dilation_w * s->x_w);
    if (t.k < t.k_runs && (taps == 1 || t.a_next != t.a_step)) {
        t.k_runs = t.k;
        t.k = vertical.end - vertical.begin;
        t.a_step = ag_bytes(x_row);
        t.b_step = ag_bytes(dy_row);
        t.a_skip = ag_bytes(x_step);
        t.b_skip = ag_bytes(s->ldy);
    }
    t.a_skip -= t.k * t.a_step;
    t.b_skip -= t.k * t.b_step;
    t.a = x + vertical.begin * x_row + first * x_step;
    t.b = dy + vertical.begin * dy_row + (ptrdiff_t)first * s->ldy;
    t.c = c;
    t.c_next = ag_bytes(AG_CHANNEL_TILE);
    t.init = c;
    t.count = taps;
    return t;
}

/* The gradient of `taps` adjacent taps of a row; x at the first of them. */
static void ag_tap_gradients(const float *x, const float *dy, float *dw, int32_t taps,
                             ag_window_range vertical, const ag_window_range *horizontal, int32_t n,
                             const ag_conv2d_shape *s, float alpha, float beta) {
    int32_t begin = horizontal[0].begin, end = horizontal[taps - 1].end, count = 0;
    float sums[AG_TAPS][AG_CHANNEL_TILE];
    ag_depthwise_tile products[AG_TAP_PRODUCTS];
    const bool rows = vertical.begin < vertical.end, common = rows && begin < end;
    if (common) {
        products[count] = ag_tap_products(x, dy, sums[0], taps, vertical, begin, end, s);
        products[count++].init = ag_zero_channels;
    } else {
        begin = end = 0;
    }
    for (int32_t tap = 0; tap < taps && rows; tap++) {
        const float *const first_pixel = x + (ptrdiff_t)tap * s->dilation_w * s->x_w;
        const int32_t first = horizontal[tap].begin, last = horizontal[tap].end;
        const int32_t before = begin < last ? begin : last, after = end > first ? end : first;
        if (first < before) {
            products[count++] = ag_tap_products(first_pixel, dy, sums[tap], 1, vertical, first, before, s);
        }
        if (after < last) {
            products[count++] = ag_tap_products(first_pixel, dy, sums[tap], 1, vertical, after, last, s);
        }
    }
    for (int32_t k = 0, done = 0, next; k < s->c; k = next) {
        const int32_t channels = s->c - k < AG_CHANNEL_TILE ? s->c - k : AG_CHANNEL_TILE;
        next = ag_next_channel_tile(k, s->c);
        if (!common) {
            memset(sums, 0, sizeof sums);
        }
        for (int32_t i = 0; i < count; i++) {
            ag_set_depthwise_tile(&products[i], channels, n, s->x_n, (ptrdiff_t)s->oh * s->ow * s->ldy);
            AG_DEPTHWISE_MICROKERNEL(&products[i]);
            products[i].a += next - k;
            products[i].b += next - k;
        }
        for (int32_t tap = 0; tap < taps; tap++) {
            AG_SYMBOL(axpby_f32)(sums[tap] + done - k, dw + (ptrdiff_t)tap * s->c + done, k + channels - done,
                                 alpha, beta);
        }
        done = k + channels;
    }
}

static void ag_depthwise2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                                    const ag_conv2d_shape *s, float alpha, float beta) {
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t top = i * s->dilation_h - s->pad_top;
        const ag_window_range vertical = ag_windows_with_tap(top, s->oh, s->stride_h, s->h);
        for (int32_t j = 0, taps; j < s->kw; j += taps, dw += (ptrdiff_t)taps * s->c) {
            const int32_t left = j * s->dilation_w - s->pad_left;
            ag_window_range horizontal[AG_TAPS];
            taps = s->kw - j < AG_TAPS ? s->kw - j : AG_TAPS;
            for (int32_t tap = 0; tap < taps; tap++) {
                horizontal[tap] = ag_windows_with_tap(left + tap * s->dilation_w, s->ow, s->stride_w, s->w);
            }
            ag_tap_gradients(x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w, dy, dw, taps, vertical,
                             horizontal, n, s, alpha, beta);
        }
    }
}

void AG_SYMBOL(depthwise2d_f32)(const float *x, const float *w, float *y, int32_t n,
                                const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    ag_depthwise2d_tiled(x, w, y, n, shape);
    AG_FINISH(epilogue, y, shape->ldy, n * shape->oh * shape->ow, shape->o);
}

void AG_SYMBOL(depthwise2d_dw_f32)(const float *x, const float *dy, float *dw, int32_t n,
                                   const ag_conv2d_shape *shape, float alpha, float beta) {
    const int32_t together = AG_GENERAL_TILES ? n : 1; /* images */
    for (int32_t i = 0; i < n; i += together) {
        ag_depthwise2d_dw_tiled(x, dy, dw, together, shape, alpha, i > 0 ? 1.0f : beta);
        x += shape->x_n;
        dy += (ptrdiff_t)shape->oh * shape->ow * shape->ldy;
    }
}
