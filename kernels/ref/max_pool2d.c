/* Max pooling: the maximum of each window, its index, and the gradient. */
#include "ag_kernels.h"
#include "windows.h"

#include <math.h>

/* Offset in an image of element `index` of the window with this corner, or -1 in the padding. */
static inline ptrdiff_t element_at(int32_t index, int32_t top, int32_t left, const ag_pool2d_shape *s) {
    const int32_t row = top + index / s->kw * s->dilation_h, column = left + index % s->kw * s->dilation_w;
    if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
        return -1;
    }
    return (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
}

/* The first maximum among the elements inside the image, or the last NaN; -1 where all are padding. */
static inline int32_t largest(const float *x, int32_t top, int32_t left, const ag_pool2d_shape *s) {
    int32_t best = -1;
    float value = 0.0f;
    for (int32_t e = 0; e < s->kh * s->kw; e++) {
        const ptrdiff_t at = element_at(e, top, left, s);
        if (at >= 0 && (best < 0 || x[at] > value || isnan(x[at]))) {
            best = e;
            value = x[at];
        }
    }
    return best;
}

/* index: NULL where only the values are needed. */
static inline void maxima(const float *x, float *y, uint8_t *index, int32_t n, const ag_pool2d_shape *s) {
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->c) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t k = 0; k < s->c; k++) {
                    const float *channel = x + (ptrdiff_t)k * s->x_c;
                    const int32_t best = largest(channel, top, left, s);
                    y[k] = best < 0 ? -INFINITY : channel[element_at(best, top, left, s)];
                    if (index != NULL) {
                        *index++ = (uint8_t)(best < 0 ? 0 : best);
                    }
                }
            }
        }
    }
}

void ag_max_pool2d_f32_ref(const float *x, float *y, uint8_t *index, int32_t n,
                           const ag_pool2d_shape *shape) {
    maxima(x, y, index, n, shape);
}

void ag_max_pool2d_values_f32_ref(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    maxima(x, y, NULL, n, shape);
}

void ag_max_pool2d_dx_f32_ref(const float *dy, const uint8_t *index, float *dx, int32_t n,
                              const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        ag_clear_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, dy += s->c, index += s->c) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t k = 0; k < s->c; k++) {
                    const ptrdiff_t at = element_at(index[k], top, left, s);
                    if (at >= 0) {
                        dx[at + (ptrdiff_t)k * s->x_c] += dy[k];
                    }
                }
            }
        }
    }
}

void ag_max_pool2d_pick_f32_ref(const float *x, const uint8_t *index, float *y, int32_t n,
                                const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->c, index += s->c) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t k = 0; k < s->c; k++) {
                    const ptrdiff_t at = element_at(index[k], top, left, s);
                    y[k] = at < 0 ? 0.0f : x[at + (ptrdiff_t)k * s->x_c];
                }
            }
        }
    }
}
