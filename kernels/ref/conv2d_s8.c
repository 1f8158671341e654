/* Convolution and depthwise convolution of quantised images. */
#include "ag_quantization.h"

#include <stdint.h>

typedef int8_t operand;

static inline float real(operand q, int32_t zero) {
    return (float)(q - zero);
}

#include "convolution.h"

/* The sum of one window of an output channel; x at its group's first channel. */
INLINED int32_t window_sum(const int8_t *x, const int8_t *w, int32_t sum, int32_t p, int32_t q,
                           int32_t x_zero, channels_of c, const ag_conv2d_shape *s) {
    const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++, w += c.tap) {
            const ptrdiff_t at = pixel_at(top + i * s->dilation_h, left + j * s->dilation_w, s);
            if (at < 0) {
                continue;
            }
            for (int32_t k = 0; k < c.inputs; k++) {
                sum += (x[at + (ptrdiff_t)k * s->x_c] - x_zero) * w[k];
            }
        }
    }
    return sum;
}

INLINED void convolve(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                      const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero, int32_t low,
                      int32_t high, channels_of c, const ag_conv2d_shape *s) {
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                for (int32_t o = 0; o < s->o; o++) {
                    const int8_t *group = x + (ptrdiff_t)(o / c.outputs) * c.inputs * s->x_c;
                    const int32_t sum =
                        window_sum(group, w + (ptrdiff_t)o * c.filter, bias[o], p, q, x_zero, c, s);
                    const int32_t v = ag_requantized(sum, multiplier[o], shift[o]) + y_zero;
                    y[o] = (int8_t)ag_limited(v, low, high);
                }
            }
        }
    }
}

void ag_conv2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                      const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero, int32_t low,
                      int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    (void)scratch;
    convolve(x, w, bias, multiplier, shift, y, n, x_zero, y_zero, low, high, of_groups(shape), shape);
}

void ag_depthwise2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                           const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                           int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    (void)scratch;
    convolve(x, w, bias, multiplier, shift, y, n, x_zero, y_zero, low, high, of_depthwise(shape), shape);
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
                    const int32_t sum = window_sum(x + (ptrdiff_t)c * s->x_c, w + c, bias[c], p, q, x_zero,
                                                   of_depthwise(s), s);
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
