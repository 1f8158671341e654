/* Depthwise convolution and its gradients in tiles of channels (window_sums.h). Channels are contiguous, and
 * there are at least AG_CHANNEL_TILE of them.
 *
 *     y, dx:  window sums: one micro-kernel call per run of outputs with the same valid taps
 *     dw:     one tap of one tile T of channels:
 *             dw[tap, T] = sum over pixels of x[pixel + tap, T] * dy[pixel, T]
 *             with AG_GENERAL_TILES, several taps of a row at once, which share dy */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/window_sums.h"

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
/* The gradient of one tap of AG_CHANNEL_TILE channels: the sum over the images and over those outputs. */
static void ag_tap_sum(const float *x, const float *dy, float sums[AG_CHANNEL_TILE], int32_t n,
                       ag_output_range vertical, ag_output_range horizontal, const ag_conv2d_shape *s) {
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy;
    const ptrdiff_t x_row = (ptrdiff_t)s->stride_h * s->x_h, x_step = (ptrdiff_t)s->stride_w * s->x_w;
    ag_depthwise_tile sum;
    if (vertical.count == 0 || horizontal.count == 0) {
        for (int32_t k = 0; k < AG_CHANNEL_TILE; k++) {
            sums[k] = 0.0f;
        }
        return;
    }
    sum.k = horizontal.count;
    sum.k_runs = vertical.count;
    sum.a_step = ag_bytes(x_step);
    sum.b_step = ag_bytes(s->ldy);
    sum.a_skip = ag_bytes(x_row);
    sum.b_skip = ag_bytes(dy_row);
    if (sum.k < sum.k_runs) { /* the longer axis is a run */
        sum.k = vertical.count;
        sum.k_runs = horizontal.count;
        sum.a_step = ag_bytes(x_row);
        sum.b_step = ag_bytes(dy_row);
        sum.a_skip = ag_bytes(x_step);
        sum.b_skip = ag_bytes(s->ldy);
    }
    sum.a_skip -= sum.k * sum.a_step;
    sum.b_skip -= sum.k * sum.b_step;
    sum.a = x + (ptrdiff_t)vertical.input * s->x_h + (ptrdiff_t)horizontal.input * s->x_w;
    sum.b = dy + vertical.first * dy_row + (ptrdiff_t)horizontal.first * s->ldy;
    sum.init = ag_zero_channels;
    sum.c = sums;
    sum.count = 1;
    sum.a_next = sum.c_next = 0;
    for (; n > 0; n--, sum.a += s->x_n, sum.b += s->oh * dy_row) {
        AG_DEPTHWISE_MICROKERNEL(&sum);
        sum.init = sums;
    }
}

static void ag_depthwise2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                                    const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_axis rows = ag_forward_axis(s->oh, s->h, s->kh, s->stride_h, s->pad_top, s->dilation_h);
    const ag_axis columns = ag_forward_axis(s->ow, s->w, s->kw, s->stride_w, s->pad_left, s->dilation_w);
    float sums[AG_CHANNEL_TILE];
    for (int32_t i = 0; i < s->kh; i++) {
        const ag_output_range vertical = ag_outputs_with_tap(i, &rows);
        for (int32_t j = 0; j < s->kw; j++, dw += s->c) {
            const ag_output_range horizontal = ag_outputs_with_tap(j, &columns);
            for (int32_t k = 0, done = 0; k < s->c; k = ag_next_channel_tile(k, s->c)) {
                ag_tap_sum(x + k, dy + k, sums, n, vertical, horizontal, s);
                AG_SYMBOL(axpby_f32)(sums + done - k, dw + done, k + AG_CHANNEL_TILE - done, alpha, beta);
                done = k + AG_CHANNEL_TILE;
            }
        }
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
