/* Convolution fused with max pooling: the result of the convolution is never stored. The order of the sums is
 * the specification, and the same as in ag_conv2d. */
#include "ag_kernels.h"

#include <math.h>

typedef float element;
#include "gradients.h"

static inline ag_conv2d_shape convolution_of(const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape c = {s->h,       s->w,        s->c,          s->oh,         s->ow,
                               s->o,       s->kh,       s->kw,         s->stride_h,   s->stride_w,
                               s->pad_top, s->pad_left, s->dilation_h, s->dilation_w, 1,
                               s->x_n,     s->x_h,      s->x_w,        s->x_c,        s->o};
    return c;
}

void ag_conv2d_pool_f32_ref(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                            int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ag_conv2d_shape convolution = convolution_of(s);
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
                            const ag_window window = ag_window_of(row, column, &convolution);
                            const float sum =
                                ag_window_sum(x, w + o * filter, &window, s->c, s->c, &convolution) + bias[o];
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
    const ag_conv2d_shape convolution = convolution_of(s);
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
                    const int32_t row = p * s->pool_stride_h + index[o] / s->pool_w;
                    const int32_t column = q * s->pool_stride_w + index[o] % s->pool_w;
                    const ag_window window = ag_window_of(row, column, &convolution);
                    window_add(dx, w + o * filter, dy[o], &window, s->c, s->c, &convolution);
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
