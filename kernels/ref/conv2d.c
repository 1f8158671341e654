/* Convolution over channel-last images: this order of the sums is the specification. */
#include "ag_kernels.h"

#include <stddef.h>

/* x[row, column] of an image, channel 0 */
static inline ptrdiff_t pixel(const ag_conv2d_shape *s, int32_t row, int32_t column) {
    return (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
}

/* The sum over one window for one output channel: rows, columns, channels ascending; padding is skipped. */
static inline float window_sum(const float *x, const float *w, int32_t top, int32_t left, int32_t channels,
                               const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++, w += channels) {
            const int32_t column = left + j * s->dilation_w;
            if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
                continue;
            }
            const float *src = x + pixel(s, row, column);
            for (int32_t k = 0; k < channels; k++) {
                sum += src[(ptrdiff_t)k * s->x_c] * w[k];
            }
        }
    }
    return sum;
}

void ag_conv2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                       const ag_epilogue *epilogue) {
    const ag_conv2d_shape *s = shape;
    const int32_t channels = s->c / s->groups, outputs = s->o / s->groups;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * channels;
    const float *const first = y;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t o = 0; o < s->o; o++) {
                    const float *group = x + (ptrdiff_t)(o / outputs) * channels * s->x_c;
                    const float sum = window_sum(group, w + o * filter, top, left, channels, s);
                    y[o] = ag_finished(epilogue, sum, o, y + o - first);
                }
            }
        }
    }
}

/* Adds dy * w to the window of one output channel. */
static inline void window_add(float *dx, const float *w, float dy, int32_t top, int32_t left,
                              int32_t channels, const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++, w += channels) {
            const int32_t column = left + j * s->dilation_w;
            if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
                continue;
            }
            float *dst = dx + pixel(s, row, column);
            for (int32_t k = 0; k < channels; k++) {
                dst[(ptrdiff_t)k * s->x_c] += dy * w[k];
            }
        }
    }
}

static inline void clear_image(float *x, const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->h; i++) {
        for (int32_t j = 0; j < s->w; j++) {
            for (int32_t k = 0; k < s->c; k++) {
                x[pixel(s, i, j) + (ptrdiff_t)k * s->x_c] = 0.0f;
            }
        }
    }
}

void ag_conv2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                          const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t channels = s->c / s->groups, outputs = s->o / s->groups;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * channels;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        clear_image(dx, s);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t o = 0; o < s->o; o++) {
                    float *group = dx + (ptrdiff_t)(o / outputs) * channels * s->x_c;
                    window_add(group, w + o * filter, dy[o], top, left, channels, s);
                }
            }
        }
    }
}

/* The sum over all windows, ascending, of dy times the element (row, column) away from the window's corner.
 */
static inline float weight_sum(const float *x, const float *dy, int32_t row, int32_t column, int32_t n,
                               const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t r = p * s->stride_h - s->pad_top + row;
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t c = q * s->stride_w - s->pad_left + column;
                if (r >= 0 && r < s->h && c >= 0 && c < s->w) {
                    sum += x[pixel(s, r, c)] * *dy;
                }
            }
        }
    }
    return sum;
}

void ag_conv2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n, const ag_conv2d_shape *shape,
                          float alpha, float beta) {
    const ag_conv2d_shape *s = shape;
    const int32_t channels = s->c / s->groups, outputs = s->o / s->groups;
    for (int32_t o = 0; o < s->o; o++) {
        const float *group = x + (ptrdiff_t)(o / outputs) * channels * s->x_c;
        for (int32_t i = 0; i < s->kh; i++) {
            for (int32_t j = 0; j < s->kw; j++) {
                for (int32_t k = 0; k < channels; k++, dw++) {
                    const float sum = weight_sum(group + (ptrdiff_t)k * s->x_c, dy + o, i * s->dilation_h,
                                                 j * s->dilation_w, n, s);
                    *dw = beta == 0.0f ? alpha * sum : alpha * sum + beta * *dw;
                }
            }
        }
    }
}
