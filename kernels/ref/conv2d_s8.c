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

void ag_depthwise2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                           const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                           int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    (void)scratch;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                for (int32_t c = 0; c < s->c; c++) {
                    int32_t sum = bias[c];
                    for (int32_t i = 0; i < s->kh; i++) {
                        const int32_t row = p * s->stride_h - s->pad_top + i * s->dilation_h;
                        for (int32_t j = 0; j < s->kw; j++) {
                            const int32_t column = q * s->stride_w - s->pad_left + j * s->dilation_w;
                            if (row >= 0 && row < s->h && column >= 0 && column < s->w) {
                                const ptrdiff_t at = (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w +
                                                     (ptrdiff_t)c * s->x_c;
                                sum += (x[at] - x_zero) * w[(i * s->kw + j) * s->c + c];
                            }
                        }
                    }
                    const int32_t v = ag_requantized(sum, multiplier[c], shift[c]) + y_zero;
                    y[c] = (int8_t)ag_limited(v, low, high);
                }
            }
        }
    }
}
