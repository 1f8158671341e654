/* Depthwise convolution, a vector of channels at a time; the channels of a pixel are contiguous. */
#include "ag_kernels.h"
#include "window_sums.h"

enum { BLOCK = 4 };

/* The number of vectors for `channels` channels, at most BLOCK; the last may be partial. */
ALWAYS_INLINE int32_t vectors_of(int32_t channels) {
    return channels >= BLOCK * LANES ? BLOCK : (channels + LANES - 1) / LANES;
}

/* The sum over taps (i, j) of x * w for `vectors` vectors of channels; tap (i, j) of x is at i * x_i + j *
 * x_j, and of w at i * w_i + j * w_j. */
ALWAYS_INLINE void tap_sums(int32_t vectors, const float *x, ptrdiff_t x_i, ptrdiff_t x_j, const float *w,
                            ptrdiff_t w_i, ptrdiff_t w_j, int32_t rows, int32_t columns, float *y,
                            int32_t channels) {
    const int32_t last = channels - (vectors - 1) * LANES;
    vec sum[BLOCK];
    for (int32_t v = 0; v < vectors; v++) {
        sum[v] = zero();
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < columns; j++) {
            const float *src = x + i * x_i + j * x_j, *weight = w + i * w_i + j * w_j;
            for (int32_t v = 0; v < vectors; v++) {
                const int32_t count = v == vectors - 1 ? last : LANES;
                sum[v] += load_partial(src + (ptrdiff_t)v * LANES, count) *
                          load_partial(weight + (ptrdiff_t)v * LANES, count);
            }
        }
    }
    for (int32_t v = 0; v < vectors; v++) {
        store_partial(y + (ptrdiff_t)v * LANES, sum[v], v == vectors - 1 ? last : LANES);
    }
}

static void pixel(const float *x, ptrdiff_t x_i, ptrdiff_t x_j, const float *w, ptrdiff_t w_i, ptrdiff_t w_j,
                  int32_t rows, int32_t columns, float *y, int32_t channels) {
    while (channels > 0) {
        const int32_t vectors = vectors_of(channels);
        const int32_t block = channels < BLOCK * LANES ? channels : BLOCK * LANES;
        if (vectors == 4) {
            tap_sums(4, x, x_i, x_j, w, w_i, w_j, rows, columns, y, block);
        } else if (vectors == 3) {
            tap_sums(3, x, x_i, x_j, w, w_i, w_j, rows, columns, y, block);
        } else if (vectors == 2) {
            tap_sums(2, x, x_i, x_j, w, w_i, w_j, rows, columns, y, block);
        } else {
            tap_sums(1, x, x_i, x_j, w, w_i, w_j, rows, columns, y, block);
        }
        x += block, w += block, y += block, channels -= block;
    }
}

void ag_depthwise2d_f32_host(const float *x, const float *w, float *y, int32_t n,
                             const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t top = p * s->stride_h - s->pad_top;
            const int32_t i0 = first_valid_tap(top, s->dilation_h);
            const int32_t i1 = end_valid_tap(top, s->kh, s->dilation_h, s->h);
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int32_t left = q * s->stride_w - s->pad_left;
                const int32_t j0 = first_valid_tap(left, s->dilation_w);
                const int32_t j1 = end_valid_tap(left, s->kw, s->dilation_w, s->w);
                const float *src = x + (ptrdiff_t)(top + i0 * s->dilation_h) * s->x_h +
                                   (ptrdiff_t)(left + j0 * s->dilation_w) * s->x_w;
                pixel(src, (ptrdiff_t)s->dilation_h * s->x_h, (ptrdiff_t)s->dilation_w * s->x_w,
                      w + ((ptrdiff_t)i0 * s->kw + j0) * s->c, (ptrdiff_t)s->kw * s->c, s->c, i1 - i0,
                      j1 - j0, y, s->c);
            }
        }
    }
}

/* The windows that cover an element along one axis: taps first, first + step, ... (`count` of them), which
 * belong to results `result`, result - result_step, ... */
typedef struct {
    int32_t first, step, count, result, result_step;
} covering;

static covering windows_covering(int32_t position, int32_t pad, int32_t taps, int32_t dilation,
                                 int32_t stride, int32_t results) {
    covering w = {0, 1, 0, 0, 0};
    for (int32_t i = 0; i < taps; i++) {
        const int32_t start = position + pad - i * dilation;
        if (start < 0 || start % stride != 0 || start / stride >= results) {
            continue;
        }
        if (w.count == 0) {
            w.first = i;
            w.result = start / stride;
        } else if (w.count == 1) {
            w.step = i - w.first;
            w.result_step = w.result - start / stride;
        }
        w.count++;
    }
    return w;
}

void ag_depthwise2d_dx_f32_host(const float *dy, const float *w, float *dx, int32_t n,
                                const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const ptrdiff_t image = (ptrdiff_t)s->oh * s->ow * s->ldy;
    for (int32_t b = 0; b < n; b++, dy += image, dx += s->x_n) {
        for (int32_t row = 0; row < s->h; row++) {
            const covering vertical =
                windows_covering(row, s->pad_top, s->kh, s->dilation_h, s->stride_h, s->oh);
            for (int32_t column = 0; column < s->w; column++) {
                const covering horizontal =
                    windows_covering(column, s->pad_left, s->kw, s->dilation_w, s->stride_w, s->ow);
                pixel(dy + ((ptrdiff_t)vertical.result * s->ow + horizontal.result) * s->ldy,
                      -(ptrdiff_t)vertical.result_step * s->ow * s->ldy,
                      -(ptrdiff_t)horizontal.result_step * s->ldy,
                      w + ((ptrdiff_t)vertical.first * s->kw + horizontal.first) * s->c,
                      (ptrdiff_t)vertical.step * s->kw * s->c, (ptrdiff_t)horizontal.step * s->c,
                      vertical.count, horizontal.count,
                      dx + (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w, s->c);
            }
        }
    }
}

/* The sum over all pixels of x * dy for one tap and `vectors` vectors of channels. */
ALWAYS_INLINE void tap_sum(int32_t vectors, const ag_conv2d_shape *s, const float *x, const float *dy,
                           int32_t n, int32_t i, int32_t j, float *dw, int32_t channels, float alpha,
                           float beta) {
    const int32_t last = channels - (vectors - 1) * LANES;
    const int32_t row = i * s->dilation_h - s->pad_top, column = j * s->dilation_w - s->pad_left;
    const int32_t p0 = first_valid_tap(row, s->stride_h), p1 = end_valid_tap(row, s->oh, s->stride_h, s->h);
    const int32_t q0 = first_valid_tap(column, s->stride_w),
                  q1 = end_valid_tap(column, s->ow, s->stride_w, s->w);
    vec sum[BLOCK];
    for (int32_t v = 0; v < vectors; v++) {
        sum[v] = zero();
    }
    for (int32_t b = 0; b < n; b++, x += s->x_n, dy += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t p = p0; p < p1; p++) {
            const float *src = x + (ptrdiff_t)(p * s->stride_h + row) * s->x_h +
                               (ptrdiff_t)(q0 * s->stride_w + column) * s->x_w;
            const float *factor = dy + ((ptrdiff_t)p * s->ow + q0) * s->ldy;
            for (int32_t q = q0; q < q1; q++, src += (ptrdiff_t)s->stride_w * s->x_w, factor += s->ldy) {
                for (int32_t v = 0; v < vectors; v++) {
                    const int32_t count = v == vectors - 1 ? last : LANES;
                    sum[v] += load_partial(src + (ptrdiff_t)v * LANES, count) *
                              load_partial(factor + (ptrdiff_t)v * LANES, count);
                }
            }
        }
    }
    for (int32_t v = 0; v < vectors; v++) {
        scale_add(dw + (ptrdiff_t)v * LANES, sum[v], v == vectors - 1 ? last : LANES, alpha, beta);
    }
}

void ag_depthwise2d_dw_f32_host(const float *x, const float *dy, float *dw, int32_t n,
                                const ag_conv2d_shape *shape, float alpha, float beta) {
    const ag_conv2d_shape *s = shape;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++, dw += s->c) {
            for (int32_t k = 0; k < s->c; k += BLOCK * LANES) {
                const int32_t left = s->c - k, block = left < BLOCK * LANES ? left : BLOCK * LANES;
                const int32_t vectors = vectors_of(block);
                if (vectors == 4) {
                    tap_sum(4, s, x + k, dy + k, n, i, j, dw + k, block, alpha, beta);
                } else if (vectors == 3) {
                    tap_sum(3, s, x + k, dy + k, n, i, j, dw + k, block, alpha, beta);
                } else if (vectors == 2) {
                    tap_sum(2, s, x + k, dy + k, n, i, j, dw + k, block, alpha, beta);
                } else {
                    tap_sum(1, s, x + k, dy + k, n, i, j, dw + k, block, alpha, beta);
                }
            }
        }
    }
}
