/* Max pooling and its adjoint, window by window over channels, which are contiguous. */
#include "ag_kernels.h"
#include "tiles/maxima.h"
#include "tiles/tap_ranges.h"
#include "tiles/zero_image.h"

#include <math.h>

/* `indexed`, a constant: there is an index. */
ALWAYS_INLINE void ag_pool_windows(const float *x, bool indexed, float *y, uint8_t *index, int32_t n,
                                   const ag_pool2d_shape *s) {
    ag_elements e = {.row_step = (ptrdiff_t)s->dilation_h * s->x_h,
                     .step = (ptrdiff_t)s->dilation_w * s->x_w,
                     .row_number = s->kw};
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const ag_tap_range rows =
                ag_tap_range_from(p, s->oh, s->stride_h, s->pad_top, s->kh, s->dilation_h, s->h);
            e.rows = rows.last - rows.first;
            for (int32_t q = 0; q < s->ow; q++, y += s->c, index = indexed ? index + s->c : NULL) {
                const ag_tap_range columns =
                    ag_tap_range_from(q, s->ow, s->stride_w, s->pad_left, s->kw, s->dilation_w, s->w);
                e.columns = columns.last - columns.first;
                e.first = rows.first * s->kw + columns.first;
                e.x = x + (ptrdiff_t)(p * s->stride_h - s->pad_top) * s->x_h + rows.first * e.row_step +
                      (ptrdiff_t)(q * s->stride_w - s->pad_left) * s->x_w + columns.first * e.step;
                if (e.rows > 0 && e.columns > 0) {
                    ag_maxima(&e, false, indexed, y, index, s->c);
                    continue;
                }
                for (int32_t k = 0; k < s->c; k++) {
                    y[k] = -INFINITY;
                    if (indexed) {
                        index[k] = 0;
                    }
                }
            }
        }
    }
}

void AG_SYMBOL(max_pool2d_f32)(const float *x, float *y, uint8_t *index, int32_t n,
                               const ag_pool2d_shape *shape) {
    ag_pool_windows(x, true, y, index, n, shape);
}

void AG_SYMBOL(max_pool2d_values_f32)(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape) {
    ag_pool_windows(x, false, y, NULL, n, shape);
}

static inline void ag_pool_scatter(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                   const int32_t *offsets) {
    for (int32_t k = 0; k < c; k++, dx++) {
        dx[offsets[index[k]]] += dy[k];
    }
}

enum { AG_POOL_TAPS = 16 }; /* the largest number of elements of a window */

static inline bool ag_in_range(int32_t position, int32_t size) {
    return position >= 0 && position < size;
}

/* A window that extends past an edge: gradients of elements in the padding are dropped. */
static void ag_window_scatter(const float *dy, const uint8_t *index, float *dx, int32_t top, int32_t left,
                              const ag_pool2d_shape *s) {
    for (int32_t k = 0; k < s->c; k++) {
        const int32_t row = top + index[k] / s->kw * s->dilation_h;
        const int32_t column = left + index[k] % s->kw * s->dilation_w;
        if (ag_in_range(row, s->h) && ag_in_range(column, s->w)) {
            dx[(ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w + k] += dy[k];
        }
    }
}

void AG_SYMBOL(max_pool2d_dx_f32)(const float *dy, const uint8_t *index, float *dx, int32_t n,
                                  const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    const int32_t height = (s->kh - 1) * s->dilation_h, width = (s->kw - 1) * s->dilation_w;
    int32_t offsets[AG_POOL_TAPS];
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            offsets[i * s->kw + j] = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w;
        }
    }
    for (; n > 0; n--, dx += s->x_n) {
        ag_zero_image(dx, s->h, s->w, s->c, s->x_h, s->x_w, s->x_c);
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t top = p * s->stride_h - s->pad_top;
            const bool rows_inside = top >= 0 && top + height < s->h;
            for (int32_t q = 0; q < s->ow; q++, dy += s->c, index += s->c) {
                const int32_t left = q * s->stride_w - s->pad_left;
                if (rows_inside && left >= 0 && left + width < s->w) {
                    float *corner = dx + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                    ag_pool_scatter(dy, index, corner, s->c, offsets);
                } else {
                    ag_window_scatter(dy, index, dx, top, left, s);
                }
            }
        }
    }
}
