/* Depthwise convolution, a window for every channel: this order of the sums is the specification. */
#include "ag_kernels.h"

#include <stddef.h>

static inline ptrdiff_t pixel(const ag_conv2d_shape *s, int32_t row, int32_t column) {
    return (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
}

static inline float window_sum(const float *x, const float *w, int32_t top, int32_t left,
                               const ag_conv2d_shape *s) {
    float sum = 0.0f;
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++, w += s->c) {
            const int32_t column = left + j * s->dilation_w;
            if (row >= 0 && row < s->h && column >= 0 && column < s->w) {
                sum += x[pixel(s, row, column)] * *w;
            }
        }
    }
    return sum;
}

void ag_depthwise2d_f32_ref(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape,
                            const ag_epilogue *epilogue) {
    const ag_conv2d_shape *s = shape;
    const float *const first = y;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t k = 0; k < s->c; k++) {
                    const float sum = window_sum(x + (ptrdiff_t)k * s->x_c, w + k, top, left, s);
                    y[k] = ag_finished(epilogue, sum, k, y + k - first);
                }
            }
        }
    }
}

static inline void window_add(float *dx, const float *w, float dy, int32_t top, int32_t left,
                              const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++, w += s->c) {
            const int32_t column = left + j * s->dilation_w;
            if (row >= 0 && row < s->h && column >= 0 && column < s->w) {
                dx[pixel(s, row, column)] += dy * *w;
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

void ag_depthwise2d_dx_f32_ref(const float *dy, const float *w, float *dx, int32_t n,
                               const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        clear_image(dx, s);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t k = 0; k < s->c; k++) {
                    window_add(dx + (ptrdiff_t)k * s->x_c, w + k, dy[k], top, left, s);
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

void ag_depthwise2d_dw_f32_ref(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    const ag_conv2d_shape *s = shape;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            for (int32_t k = 0; k < s->c; k++, dw++) {
                const float sum =
                    weight_sum(x + (ptrdiff_t)k * s->x_c, dy + k, i * s->dilation_h, j * s->dilation_w, n, s);
                *dw = beta == 0.0f ? alpha * sum : alpha * sum + beta * *dw;
            }
        }
    }
}
