/* Average and max pooling of quantised images. */
#include "ag_kernels.h"
#include "ag_quantization.h"

#include <stddef.h>

/* The elements of a window that are inside the image; rows without a gap between them are one. */
typedef struct {
    int32_t top, left, rows, columns;
} ag_window_s8;

static inline ag_window_s8 window_at(int32_t top, int32_t left, const ag_pool2d_shape *s) {
    const int32_t first_row = top < 0 ? 0 : top, end_row = top + s->kh < s->h ? top + s->kh : s->h;
    const int32_t first = left < 0 ? 0 : left, end = left + s->kw < s->w ? left + s->kw : s->w;
    const int32_t rows = end_row - first_row, columns = end - first, is_one = columns * s->x_w == s->x_h;
    const ag_window_s8 inside = {first_row, first, is_one ? 1 : rows, is_one ? rows * columns : columns};
    return inside;
}

static inline const int8_t *row_of(const int8_t *x, const ag_window_s8 *inside, int32_t i,
                                   const ag_pool2d_shape *s) {
    return x + (ptrdiff_t)(inside->top + i) * s->x_h + (ptrdiff_t)inside->left * s->x_w;
}

static inline int32_t mean(const int8_t *x, const ag_window_s8 *inside, const ag_pool2d_shape *s) {
    const int32_t count = inside->rows * inside->columns;
    int32_t sum = 0;
    for (int32_t i = 0; i < inside->rows; i++) {
        const int8_t *v = row_of(x, inside, i, s);
        for (int32_t j = inside->columns; j > 0; j--, v += s->x_w) {
            sum += *v;
        }
    }
    return (sum + (sum > 0 ? count / 2 : -(count / 2))) / count;
}

static inline int32_t largest(const int8_t *x, const ag_window_s8 *inside, const ag_pool2d_shape *s) {
    int32_t most = INT8_MIN;
    for (int32_t i = 0; i < inside->rows; i++) {
        const int8_t *v = row_of(x, inside, i, s);
        for (int32_t j = inside->columns; j > 0; j--, v += s->x_w) {
            most = *v > most ? *v : most;
        }
    }
    return most;
}

/* y = the mean of each window, or with `of_largest` its largest element, between the limits. */
static inline void pool(int32_t of_largest, const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                        const ag_pool2d_shape *s) {
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++) {
                const int32_t top = p * s->stride_h - s->pad_top, left = q * s->stride_w - s->pad_left;
                const ag_window_s8 inside = window_at(top, left, s);
                for (int32_t c = 0; c < s->c; c++) {
                    const int8_t *first = x + (ptrdiff_t)c * s->x_c;
                    const int32_t v = of_largest ? largest(first, &inside, s) : mean(first, &inside, s);
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
