/* Average and max pooling of quantised images. */
#include "ag_kernels.h"
#include "ag_quantization.h"

#include <stddef.h>

/* The mean of the elements of a window inside the image, rounded, or with `largest` the largest of them. */
static inline int32_t pooled(int32_t largest, const int8_t *x, int32_t top, int32_t left,
                             const ag_pool2d_shape *s) {
    const int32_t first_row = top < 0 ? 0 : top, end_row = top + s->kh < s->h ? top + s->kh : s->h;
    const int32_t first = left < 0 ? 0 : left, end = left + s->kw < s->w ? left + s->kw : s->w;
    const int32_t count = (end_row - first_row) * (end - first);
    int32_t sum = 0, most = INT8_MIN;
    for (int32_t i = first_row; i < end_row; i++) {
        const int8_t *v = x + (ptrdiff_t)i * s->x_h + (ptrdiff_t)first * s->x_w;
        for (int32_t j = first; j < end; j++, v += s->x_w) {
            sum += *v;
            most = *v > most ? *v : most;
        }
    }
    return largest ? most : (sum + (sum > 0 ? count / 2 : -(count / 2))) / count;
}

static inline void pool(int32_t largest, const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                        const ag_pool2d_shape *s) {
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                for (int32_t c = 0; c < s->c; c++) {
                    const int32_t v = pooled(largest, x + (ptrdiff_t)c * s->x_c, top, left, s);
                    *y++ = (int8_t)ag_limited(v, low, high);
                }
            }
        }
    }
}

void ag_avg_pool2d_s8_ref(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high, void *scratch,
                          const ag_pool2d_shape *shape) {
    (void)scratch;
    pool(0, x, y, n, low, high, shape);
}

void ag_max_pool2d_s8_ref(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                          const ag_pool2d_shape *shape) {
    pool(1, x, y, n, low, high, shape);
}
