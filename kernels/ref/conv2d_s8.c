/* Convolution and depthwise convolution of quantised images. Weight (o, i, j, k) is o * filter + (i * kw + j)
 * * tap + k elements after the first one. */
#include "ag_kernels.h"
#include "ag_quantization.h"
#include "windows.h"

/* `sum` and the products of one window of output channel o. */
static inline int32_t window_sum(const int8_t *x, const int8_t *w, int32_t sum, const ag_window *v, int32_t o,
                                 int32_t filter, int32_t tap, int32_t x_zero, const ag_conv2d_shape *s) {
    const int32_t channels = s->c / s->groups, first = o / (s->o / s->groups) * channels;
    for (int32_t i = v->rows.first; i < v->rows.end; i++) {
        for (int32_t j = v->columns.first; j < v->columns.end; j++) {
            const int8_t *pixel = x + ag_tap_at(v, i, j, s) + (ptrdiff_t)first * s->x_c;
            const int8_t *weight = w + (ptrdiff_t)o * filter + (ptrdiff_t)(i * s->kw + j) * tap;
            for (int32_t k = 0; k < channels; k++) {
                sum += (pixel[(ptrdiff_t)k * s->x_c] - x_zero) * weight[k];
            }
        }
    }
    return sum;
}

/* within: NULL where no mask is stored. */
static inline void convolution(const int8_t *x, const int8_t *w, const int32_t *bias,
                               const int32_t *multiplier, const int8_t *shift, int8_t *y, uint8_t *within,
                               int32_t n, int32_t x_zero, int32_t y_zero, int32_t low, int32_t high,
                               int32_t filter, int32_t tap, const ag_conv2d_shape *s) {
    const ptrdiff_t results = (ptrdiff_t)s->oh * s->ow * s->o;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        uint8_t *const mask = within ? within + b * ((results + 7) / 8) : NULL;
        ptrdiff_t at = 0;
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->ldy) {
                const ag_window window = ag_window_of(p, q, s);
                for (int32_t o = 0; o < s->o; o++, at++) {
                    const int32_t sum = window_sum(x, w, bias[o], &window, o, filter, tap, x_zero, s);
                    const int32_t v = ag_requantized(sum, multiplier[o], shift[o]) + y_zero;
                    y[o] = (int8_t)ag_limited(v, low, high);
                    if (mask) {
                        ag_mark_within(mask, at, v, low, high);
                    }
                }
            }
        }
    }
}

void ag_conv2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                      const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero, int32_t low,
                      int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const int32_t channels = shape->c / shape->groups, filter = shape->kh * shape->kw * channels;
    (void)scratch;
    convolution(x, w, bias, multiplier, shift, y, NULL, n, x_zero, y_zero, low, high, filter, channels,
                shape);
}

void ag_conv2d_within_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                             const int8_t *shift, int8_t *y, uint8_t *within, int32_t n, int32_t x_zero,
                             int32_t y_zero, int32_t low, int32_t high, void *scratch,
                             const ag_conv2d_shape *shape) {
    const int32_t channels = shape->c / shape->groups, filter = shape->kh * shape->kw * channels;
    (void)scratch;
    convolution(x, w, bias, multiplier, shift, y, within, n, x_zero, y_zero, low, high, filter, channels,
                shape);
}

void ag_depthwise2d_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                           const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                           int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    (void)scratch;
    convolution(x, w, bias, multiplier, shift, y, NULL, n, x_zero, y_zero, low, high, 1, shape->c, shape);
}

void ag_depthwise2d_within_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias,
                                  const int32_t *multiplier, const int8_t *shift, int8_t *y, uint8_t *within,
                                  int32_t n, int32_t x_zero, int32_t y_zero, int32_t low, int32_t high,
                                  void *scratch, const ag_conv2d_shape *shape) {
    (void)scratch;
    convolution(x, w, bias, multiplier, shift, y, within, n, x_zero, y_zero, low, high, 1, shape->c, shape);
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
                    const ag_window window = ag_window_of(p, q, s);
                    const int32_t sum = window_sum(x, w, bias[c], &window, c, 1, s->c, x_zero, s);
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
