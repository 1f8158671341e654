/* Convolution and depthwise convolution of quantised images. */
#include "ag_kernels.h"
#include "ag_quantization.h"

#include <stddef.h>

void ag_conv2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                      const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero, int32_t low,
                      int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups;
    (void)scratch;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const int8_t *filter = w;
                for (int32_t o = 0; o < s->o; o++) {
                    const int32_t first = o / outputs * inputs;
                    int32_t sum = bias[o];
                    for (int32_t i = 0; i < s->kh; i++) {
                        const int32_t row = p * s->stride_h - s->pad_top + i * s->dilation_h;
                        for (int32_t j = 0; j < s->kw; j++, filter += inputs) {
                            const int32_t column = q * s->stride_w - s->pad_left + j * s->dilation_w;
                            if (row < 0 || row >= s->h || column < 0 || column >= s->w) {
                                continue;
                            }
                            const int8_t *pixel = x + (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w +
                                                  (ptrdiff_t)first * s->x_c;
                            for (int32_t k = 0; k < inputs; k++) {
                                sum += (pixel[(ptrdiff_t)k * s->x_c] - x_zero) * filter[k];
                            }
                        }
                    }
                    const int32_t v = ag_requantized(sum, multiplier[o], shift[o]) + y_zero;
                    y[o] = (int8_t)ag_limited(v, low, high);
                }
            }
        }
    }
}

/* The sum of one window of channel c. */
static inline int32_t window_sum(const int8_t *x, const int8_t *w, int32_t sum, int32_t p, int32_t q,
                                 int32_t c, int32_t x_zero, const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = p * s->stride_h - s->pad_top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++) {
            const int32_t column = q * s->stride_w - s->pad_left + j * s->dilation_w;
            if (row >= 0 && row < s->h && column >= 0 && column < s->w) {
                const ptrdiff_t at =
                    (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w + (ptrdiff_t)c * s->x_c;
                sum += (x[at] - x_zero) * w[(i * s->kw + j) * s->c + c];
            }
        }
    }
    return sum;
}

void ag_depthwise2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                           const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                           int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    (void)scratch;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                for (int32_t c = 0; c < s->c; c++) {
                    const int32_t sum = window_sum(x, w, bias[c], p, q, c, x_zero, s);
                    const int32_t v = ag_requantized(sum, multiplier[c], shift[c]) + y_zero;
                    y[c] = (int8_t)ag_limited(v, low, high);
                }
            }
        }
    }
}

/* One channel after the other: a row of results is stored where no later row reads. */
void ag_depthwise2d_in_place_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias,
                                    const int32_t *multiplier, const int8_t *shift, int8_t *y, int32_t n,
                                    int32_t x_zero, int32_t y_zero, int32_t low, int32_t high, void *scratch,
                                    const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t late = s->pad_top;
    int8_t *const rows = (int8_t *)scratch; /* (late + 1) * s->ow */
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t c = 0; c < s->c; c++) {
            int8_t *to = y + (ptrdiff_t)b * s->oh * s->ow * s->ldy + c;
            for (int32_t p = 0; p < s->oh + late; p++) {
                int8_t *const row = rows + (ptrdiff_t)(p % (late + 1)) * s->ow;
                const int8_t *const first = rows + (ptrdiff_t)((p + 1) % (late + 1)) * s->ow;
                for (int32_t q = 0; q < s->ow && p < s->oh; q++) {
                    const int32_t sum = window_sum(x, w, bias[c], p, q, c, x_zero, s);
                    const int32_t v = ag_requantized(sum, multiplier[c], shift[c]) + y_zero;
                    row[q] = (int8_t)ag_limited(v, low, high);
                }
                for (int32_t q = 0; q < s->ow && p >= late; q++, to += s->ldy) {
                    *to = first[q];
                }
            }
        }
    }
}
