/* Average and max pooling of quantised images. */
#include "ag_kernels.h"
#include "ag_quantization.h"

#include <stddef.h>

/* Sum, number and maximum of a window's elements. */
typedef struct window {
    int32_t sum, count, largest;
} window;

static inline window read_window(const int8_t *x, int32_t top, int32_t left, const ag_pool2d_shape *s) {
    window found = {0, 0, INT8_MIN};
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++) {
            const int32_t column = left + j * s->dilation_w;
            if (row >= 0 && row < s->h && column >= 0 && column < s->w) {
                const int8_t v = x[(ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w];
                found.sum += v;
                found.count++;
                found.largest = v > found.largest ? v : found.largest;
            }
        }
    }
    return found;
}

void ag_avg_pool2d_s8_ref(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high, void *scratch,
                          const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    (void)scratch;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t c = 0; c < s->c; c++) {
                    const window e = read_window(x + (ptrdiff_t)c * s->x_c, top, left, s);
                    const int32_t half = e.sum > 0 ? e.count / 2 : -(e.count / 2);
                    *y++ = (int8_t)ag_limited((e.sum + half) / e.count, low, high);
                }
            }
        }
    }
}

void ag_max_pool2d_s8_ref(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                          const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t c = 0; c < s->c; c++) {
                    const window e = read_window(x + (ptrdiff_t)c * s->x_c, top, left, s);
                    *y++ = (int8_t)ag_limited(e.largest, low, high);
                }
            }
        }
    }
}
