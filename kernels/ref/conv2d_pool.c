/* Convolution fused with max pooling: the result of the convolution is never stored. The order of the sums is
 * the specification, and the same as that of ag_conv2d. */
#include "ag_kernels.h"

#include <math.h>
#include <stddef.h>

/* The valid taps of a window along one axis that starts at `start`: first_valid_tap up to, and without,
 * end_valid_tap. */
static inline int32_t first_valid_tap(int32_t start, int32_t dilation) {
    return start < 0 ? (-start + dilation - 1) / dilation : 0;
}

static inline int32_t end_valid_tap(int32_t start, int32_t count, int32_t dilation, int32_t extent) {
    const int32_t last = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
    return last < count ? last : count;
}

/* One result of the convolution: rows, columns, channels ascending; padding is skipped. */
static inline float window_sum(const float *x, const float *w, int32_t p, int32_t q,
                               const ag_conv2d_pool_shape *s) {
    const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
    const int32_t rows = end_valid_tap(top, s->kh, s->dilation_h, s->h);
    const int32_t first_column = first_valid_tap(left, s->dilation_w);
    const int32_t columns = end_valid_tap(left, s->kw, s->dilation_w, s->w);
    const int32_t contiguous =
        s->dilation_w == 1 && s->x_w == s->c && (s->c == 1 || s->x_c == 1); /* no gaps in a row */
    const int32_t pieces = contiguous ? 1 : columns - first_column;
    const int32_t length = contiguous ? (columns - first_column) * s->c : s->c;
    const ptrdiff_t step = contiguous ? 1 : s->x_c;
    float sum = 0.0f;
    for (int32_t i = first_valid_tap(top, s->dilation_h); i < rows; i++) {
        for (int32_t t = 0; t < pieces; t++) {
            const int32_t j = first_column + t;
            const float *pixel = x + (ptrdiff_t)(top + i * s->dilation_h) * s->x_h +
                                 (ptrdiff_t)(left + j * s->dilation_w) * s->x_w;
            const float *weight = w + ((ptrdiff_t)i * s->kw + j) * s->c;
            for (int32_t k = 0; k < length; k++) {
                sum += pixel[k * step] * weight[k];
            }
        }
    }
    return sum;
}

void ag_conv2d_pool_f32_ref(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                            int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++) {
            for (int32_t q = 0; q < s->pw; q++, y += s->o, index += s->o) {
                const int32_t top = p * s->pool_stride_h, left = q * s->pool_stride_w;
                for (int32_t o = 0; o < s->o; o++) {
                    float best = 0.0f;
                    int32_t maximum = -1;
                    for (int32_t e = 0; e < s->pool_h * s->pool_w; e++) {
                        const int32_t row = top + e / s->pool_w, column = left + e % s->pool_w;
                        if (row < s->oh && column < s->ow) {
                            const float sum = window_sum(x, w + o * filter, row, column, s) + bias[o];
                            if (maximum < 0 || sum > best || isnan(sum)) {
                                best = sum;
                                maximum = e;
                            }
                        }
                    }
                    y[o] = best;
                    index[o] = (uint8_t)maximum;
                }
            }
        }
    }
}

/* The corner in x of the convolution's window that was the maximum. */
static inline int32_t corner(int32_t p, int32_t within, int32_t pool_stride, int32_t stride, int32_t pad) {
    return (p * pool_stride + within) * stride - pad;
}

void ag_conv2d_pool_dx_f32_ref(const float *dy, const uint8_t *index, const float *w, float *dx, int32_t n,
                               const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        for (int32_t i = 0; i < s->h * s->w * s->c; i++) {
            dx[i] = 0.0f;
        }
        for (int32_t p = 0; p < s->ph; p++) {
            for (int32_t q = 0; q < s->pw; q++, dy += s->o, index += s->o) {
                for (int32_t o = 0; o < s->o; o++) {
                    if (dy[o] == 0.0f) {
                        continue;
                    }
                    const int32_t top =
                        corner(p, index[o] / s->pool_w, s->pool_stride_h, s->stride_h, s->pad_top);
                    const int32_t left =
                        corner(q, index[o] % s->pool_w, s->pool_stride_w, s->stride_w, s->pad_left);
                    const int32_t rows = end_valid_tap(top, s->kh, s->dilation_h, s->h);
                    const int32_t first_column = first_valid_tap(left, s->dilation_w);
                    const int32_t columns = end_valid_tap(left, s->kw, s->dilation_w, s->w);
                    for (int32_t i = first_valid_tap(top, s->dilation_h); i < rows; i++) {
                        for (int32_t j = first_column; j < columns; j++) {
                            float *pixel = dx + (ptrdiff_t)(top + i * s->dilation_h) * s->x_h +
                                           (ptrdiff_t)(left + j * s->dilation_w) * s->x_w;
                            const float *weight = w + o * filter + ((ptrdiff_t)i * s->kw + j) * s->c;
                            for (int32_t k = 0; k < s->c; k++) {
                                pixel[k] += dy[o] * weight[k];
                            }
                        }
                    }
                }
            }
        }
    }
}

/* Adds dy times row `i` of the window with this corner, at the weights from `first` on. */
static inline void add_row(float *sums, int32_t count, int32_t first, const float *row, float dy,
                           int32_t left, const ag_conv2d_pool_shape *s) {
    int32_t column = left + first / s->c * s->dilation_w, k = first % s->c;
    for (int32_t t = 0; t < count; t++) {
        if (column >= 0 && column < s->w) {
            sums[t] += row[(ptrdiff_t)column * s->x_w + (ptrdiff_t)k * s->x_c] * dy;
        }
        if (++k == s->c) {
            k = 0;
            column += s->dilation_w;
        }
    }
}

/* The sums over all pooled results of one channel, ascending, for `count` weights of row `i`. */
static inline void row_sums(float *sums, int32_t count, int32_t first, const float *x, const float *dy,
                            const uint8_t *index, int32_t i, int32_t n, const ag_conv2d_pool_shape *s) {
    for (int32_t t = 0; t < count; t++) {
        sums[t] = 0.0f;
    }
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++) {
            for (int32_t q = 0; q < s->pw; q++, dy += s->o, index += s->o) {
                const int32_t top = corner(p, *index / s->pool_w, s->pool_stride_h, s->stride_h, s->pad_top);
                const int32_t left =
                    corner(q, *index % s->pool_w, s->pool_stride_w, s->stride_w, s->pad_left);
                const int32_t row = top + i * s->dilation_h;
                if (*dy != 0.0f && row >= 0 && row < s->h) {
                    add_row(sums, count, first, x + (ptrdiff_t)row * s->x_h, *dy, left, s);
                }
            }
        }
    }
}

void ag_conv2d_pool_dw_f32_ref(const float *x, const float *dy, const uint8_t *index, float *dw, int32_t n,
                               const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    enum { CHUNK = 32 }; /* weights of a row, so that a window is located once for all of them */
    const ag_conv2d_pool_shape *s = shape;
    const int32_t length = s->kw * s->c;
    float sums[CHUNK];
    for (int32_t o = 0; o < s->o; o++) {
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t first = 0; first < length; first += CHUNK) {
                const int32_t left = length - first, count = left < CHUNK ? left : CHUNK;
                row_sums(sums, count, first, x, dy + o, index + o, i, n, s);
                for (int32_t t = 0; t < count; t++, dw++) {
                    *dw = beta == 0.0f ? alpha * sums[t] : alpha * sums[t] + beta * *dw;
                }
            }
        }
    }
}
