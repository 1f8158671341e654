/* Depthwise convolution and its gradients in tiles of channels (window_sums.h). Channels are contiguous, and
 * there are at least AG_CHANNEL_TILE of them.
 *
 *     y, dx:  window sums: one micro-kernel call per run of outputs with the same valid taps
 *     dw:     one tap of one tile T of channels:
 *             dw[tap, T] = sum over pixels of x[pixel + tap, T] * dy[pixel, T]
 *             several taps of a row at once, which share dy: two, with AG_GENERAL_TILES more */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/window_sums.h"

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

static void ag_depthwise2d_dx_tiled(const float *dy, const float *w, float *dx, int32_t n,
                                    const ag_conv2d_shape *s) {
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

/* The outputs for which a tap is inside x, and the first input element. */
typedef struct {
    int32_t first, count, input;
} ag_output_range;

static ag_output_range ag_outputs_with_tap(int32_t tap, const ag_axis *axis) {
    ag_output_range range = {0, axis->count, 0};
    while (range.count > 0 && !ag_tap_is_inside(axis, range.first, tap)) {
        range.first++;
        range.count--;
    }
    while (range.count > 0 && !ag_tap_is_inside(axis, range.first + range.count - 1, tap)) {
        range.count--;
    }
    range.input = axis->in + range.first * axis->in_step + tap * axis->in_tap;
    return range;
}

#if AG_GENERAL_TILES
enum { AG_TAPS = 8 };

/* `taps` adjacent taps of AG_CHANNEL_TILE channels or fewer. */
typedef struct {
    float sums[AG_TAPS][AG_CHANNEL_TILE];
    ag_output_range vertical, horizontal[AG_TAPS];
    int32_t taps, channels, n;
    const ag_conv2d_shape *s;
} ag_tap_sums;

/* The sums of `taps` of them from `tap` on over the outputs of columns q ... q + width - 1; x at the first
 * tap. They are added to those computed so far, or begin at 0. */
static void ag_add_taps(ag_tap_sums *r, const float *x, const float *dy, int32_t tap, int32_t taps, int32_t q,
                        int32_t width, bool begin) {
    const ag_conv2d_shape *s = r->s;
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_tap = (ptrdiff_t)s->dilation_w * s->x_w;
    ag_depthwise_tile sum;
    sum.a = x + (ptrdiff_t)r->vertical.input * s->x_h + q * x_step + tap * x_tap;
    sum.b = dy + r->vertical.first * dy_row + (ptrdiff_t)q * s->ldy;
    sum.k = width;
    sum.k_runs = width > 0 ? r->vertical.count : 0;
    sum.a_step = ag_bytes(x_step);
    sum.b_step = ag_bytes(s->ldy);
    sum.a_skip = ag_bytes(x_row) - sum.k * sum.a_step;
    sum.b_skip = ag_bytes(dy_row) - sum.k * sum.b_step;
    sum.c = r->sums[tap];
    sum.init = begin ? ag_zero_channels : sum.c;
    sum.count = taps;
    sum.a_next = ag_bytes(x_tap);
    sum.c_next = ag_bytes(AG_CHANNEL_TILE);
    ag_set_depthwise_tile(&sum, r->channels, begin ? 0 : sum.c_next, r->n, s->x_n, s->oh * dy_row);
    AG_DEPTHWISE_MICROKERNEL(&sum);
}

/* All taps: the outputs for which all of them are inside x at once, the others column by column. */
static void ag_sum_taps(ag_tap_sums *r, const float *x, const float *dy) {
    const ag_output_range first = r->horizontal[0], last = r->horizontal[r->taps - 1];
    const int32_t end = last.first + last.count < first.first + first.count ? last.first + last.count
                                                                            : first.first + first.count;
    const int32_t begin = first.count > 0 && last.count > 0 && first.first < end ? first.first : end;
    ag_add_taps(r, x, dy, 0, r->taps, begin, end - begin, true);
    for (int32_t q = 0; q < r->s->ow; q++) {
        int32_t tap = 0, taps = 0;
        if (q >= begin && q < end) {
            q = end - 1;
            continue;
        }
        for (int32_t j = r->taps - 1; j >= 0; j--) {
            if (q >= r->horizontal[j].first && q < r->horizontal[j].first + r->horizontal[j].count) {
                tap = j;
                taps++;
            }
        }
        if (taps > 0 && r->vertical.count > 0) {
            ag_add_taps(r, x, dy, tap, taps, q, 1, false);
        }
    }
}

static void ag_depthwise2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                                    const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    ag_tap_sums r;
    r.n = n;
    r.s = s;
    for (int32_t i = 0; i < s->kh; i++) {
        r.vertical = ag_outputs_with_tap(i, &rows);
        for (int32_t j = 0; j < s->kw; j += AG_TAPS, dw += (ptrdiff_t)r.taps * s->c) {
            const float *corner = x + (ptrdiff_t)(j * s->dilation_w - s->pad_left) * s->x_w;
            r.taps = s->kw - j < AG_TAPS ? s->kw - j : AG_TAPS;
            for (int32_t tap = 0; tap < r.taps; tap++) {
                r.horizontal[tap] = ag_outputs_with_tap(j + tap, &columns);
            }
            for (int32_t k = 0; k < s->c; k += r.channels) {
                r.channels = s->c - k < AG_CHANNEL_TILE ? s->c - k : AG_CHANNEL_TILE;
                ag_sum_taps(&r, corner + k, dy + k);
                for (int32_t tap = 0; tap < r.taps; tap++) {
                    float *dst = dw + (ptrdiff_t)tap * s->c + k;
                    for (int32_t q = 0; q < r.channels; q++) {
                        const float sum = r.sums[tap][q];
                        dst[q] = beta == 0.0f ? alpha * sum : alpha * sum + beta * dst[q];
                    }
                }
            }
        }
    }
}
#else
/* The products of `taps` adjacent taps, 1 or 2, over outputs first ... end - 1 of a row and those of
 * `vertical`; x at the first tap. A run is along the longer axis, or that along which both read adjacent
 * pixels. */
static void ag_set_tap_products(ag_depthwise_tile *t, const float *x, const float *dy, int32_t taps,
                                ag_output_range vertical, int32_t first, int32_t end,
                                const ag_conv2d_shape *s) {
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy;
    const ptrdiff_t x_row = (ptrdiff_t)s->stride_h * s->x_h, x_step = (ptrdiff_t)s->stride_w * s->x_w;
    t->k = end - first;
    t->k_runs = vertical.count;
    t->a_step = ag_bytes(x_step);
    t->b_step = ag_bytes(s->ldy);
    t->a_skip = ag_bytes(x_row);
    t->b_skip = ag_bytes(dy_row);
    t->a_next = ag_bytes((ptrdiff_t)s->dilation_w * s->x_w);
    if (t->k < t->k_runs && (taps == 1 || t->a_next != t->a_step)) {
        t->k = vertical.count;
        t->k_runs = end - first;
        t->a_step = ag_bytes(x_row);
        t->b_step = ag_bytes(dy_row);
        t->a_skip = ag_bytes(x_step);
        t->b_skip = ag_bytes(s->ldy);
    }
    t->a_skip -= t->k * t->a_step;
    t->b_skip -= t->k * t->b_step;
    t->a = x + (ptrdiff_t)vertical.input * s->x_h + first * x_step;
    t->b = dy + vertical.first * dy_row + (ptrdiff_t)first * s->ldy;
    t->c_next = ag_bytes(AG_CHANNEL_TILE);
    t->count = first < end && vertical.count > 0 ? taps : 0;
}

/* The gradient of `taps` adjacent taps of a row, 1 or 2, of one image. Two taps are inside x together for
 * most outputs; those before are of the second one alone, those after of the first one. */
static void ag_tap_gradients(const float *x, const float *dy, float *dw, int32_t taps,
                             ag_output_range vertical, const ag_output_range *horizontal,
                             const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_output_range one = horizontal[0], two = horizontal[taps - 1];
    const int32_t one_end = one.first + one.count, two_end = two.first + two.count;
    int32_t begin = one.first, end = two_end < one_end ? two_end : one_end;
    float sums[2][AG_CHANNEL_TILE];
    ag_depthwise_tile products[3];
    if (begin >= end) {
        begin = end = two.count > 0 ? two_end : one.first;
    }
    ag_set_tap_products(&products[0], x, dy, taps, vertical, begin, end, s);
    ag_set_tap_products(&products[1], x, dy, 1, vertical, end > one.first ? end : one.first, one_end, s);
    ag_set_tap_products(&products[2], x + (ptrdiff_t)s->dilation_w * s->x_w, dy, 1, vertical, two.first,
                        begin < two_end ? begin : two_end, s);
    products[2].count = taps == 1 ? 0 : products[2].count;
    for (int32_t i = 0; i < 3; i++) {
        products[i].c = sums[i / 2];
        products[i].init = i == 0 ? ag_zero_channels : products[i].c;
    }
    for (int32_t k = 0, done = 0, next; k < s->c; k = next) {
        next = ag_next_channel_tile(k, s->c);
        if (products[0].count == 0) {
            memset(sums, 0, sizeof sums);
        }
        for (int32_t i = 0; i < 3; i++) {
            if (products[i].count > 0) {
                AG_DEPTHWISE_MICROKERNEL(&products[i]);
            }
            products[i].a += next - k;
            products[i].b += next - k;
        }
        for (int32_t tap = 0; tap < taps; tap++) {
            AG_SYMBOL(axpby_f32)(sums[tap] + done - k, dw + (ptrdiff_t)tap * s->c + done,
                                 k + AG_CHANNEL_TILE - done, alpha, beta);
        }
        done = k + AG_CHANNEL_TILE;
    }
}

static void ag_depthwise2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                                    const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    for (; n > 0; n--, x += s->x_n, dy += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t i = 0; i < s->kh; i++) {
            const ag_output_range vertical = ag_outputs_with_tap(i, &rows);
            for (int32_t j = 0; j < s->kw; j += 2) {
                const int32_t taps = s->kw - j < 2 ? 1 : 2;
                const ag_output_range horizontal[2] = {
                    ag_outputs_with_tap(j, &columns),
                    ag_outputs_with_tap(j + taps - 1, &columns),
                };
                ag_tap_gradients(x + (ptrdiff_t)(j * s->dilation_w - s->pad_left) * s->x_w, dy,
                                 dw + ((ptrdiff_t)i * s->kw + j) * s->c, taps, vertical, horizontal, s, alpha,
                                 beta);
            }
        }
        beta = 1.0f;
    }
}
#endif

void AG_SYMBOL(depthwise2d_f32)(const float *x, const float *w, float *y, int32_t n,
                                const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    ag_depthwise2d_tiled(x, w, y, n, shape);
    AG_FINISH(epilogue, y, shape->ldy, n * shape->oh * shape->ow, shape->o);
}

void AG_SYMBOL(depthwise2d_dx_f32)(const float *dy, const float *w, float *dx, int32_t n,
                                   const ag_conv2d_shape *shape) {
    ag_depthwise2d_dx_tiled(dy, w, dx, n, shape);
}

void AG_SYMBOL(depthwise2d_dw_f32)(const float *x, const float *dy, float *dw, int32_t n,
                                   const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_depthwise2d_dw_tiled(x, dy, dw, n, shape, alpha, beta);
}
