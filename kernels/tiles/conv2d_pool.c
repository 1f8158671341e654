/* Convolution fused with max pooling; only the maximum of each pooling window is stored. Where all windows of
 * the convolution are inside x and their rows contiguous, the rows of a tile are elements of pooling windows
 * side by side, AG_TILE_N output channels at a time:
 *
 *     pooling windows                tiles, AG_TILE_M = 4
 *     +-------+-------+              | 0 1 2 3 | 4 5 0 1 | 2 3 4 5 |   a pooling window may continue in the
 *     | 0 1 2 | 0 1 2 |      ->      +---------+---------+---------+   next tile: then its maximum so far is
 *     | 3 4 5 | 3 4 5 |               window 0    both     window 1    in y and index
 *     +-------+-------+
 *
 * Other pooled pixels are computed element by element: a row of a window times the filters is a product of a
 * matrix and a vector. */
#include "ag_kernels.h"
#include "tiles/conv2d_pool_windows.h"
#include "tiles/maxima.h"
#include "tiles/microkernel.h"
#include "tiles/window_products.h"

#include <string.h>

/* y = max(y, sums + bias) over elements `first` ... `first` + elements - 1 of a pooling window, for up to
 * AG_TILE_N channels; y is not read where `first` is 0. */
static inline void ag_pool_max(float *y, uint8_t *index, const float *sums, const float *bias, int32_t first,
                               int32_t elements, int32_t outputs) {
    const ag_elements e = {sums, bias, 0, AG_TILE_N, 1, elements, first, 0, first > 0};
    ag_maxima(&e, true, true, y, index, outputs);
}

/* Element `column` of row `row` of a pooling window, and its window of the convolution. */
typedef struct {
    const float *x;
    int32_t row, column;
} ag_pool_element;

/* Moves to the next element of pooling windows side by side. */
static inline void ag_next_pool_element(ag_pool_element *e, const ag_conv2d_pool_shape *s) {
    const ptrdiff_t column_step = (ptrdiff_t)s->stride_w * s->x_w, row_step = (ptrdiff_t)s->stride_h * s->x_h;
    e->x += column_step;
    if (++e->column == s->pool_w) {
        e->column = 0;
        e->x += row_step - s->pool_w * column_step;
        if (++e->row == s->pool_h) {
            e->row = 0;
            e->x += s->pool_stride_w * column_step - s->pool_h * row_step;
        }
    }
}

/* Interior pooled pixels side by side; the first window of the first one is at x. */
static AG_NOINLINE void ag_pool_tiles(const float *x, const float *w, const float *bias, float *y,
                                      uint8_t *index, int32_t pixels, const ag_conv2d_pool_shape *s) {
    const int32_t elements = s->pool_h * s->pool_w, filter = s->kh * s->kw * s->c;
    const ptrdiff_t window_step = (ptrdiff_t)s->pool_stride_w * s->stride_w * s->x_w;
    const ptrdiff_t step = AG_TILE_M % elements == 0 ? AG_TILE_M / elements * window_step : 0;
    ag_pool_element next = {x, 0, 0};
    bool repeats = false; /* this tile has the rows of the one before, `step` elements further */
    float sums[AG_TILE_M * AG_TILE_N];
    ag_tile t;
    ag_one_tile(&t);
    t.c = sums;
    t.alpha = 1.0f;
    t.beta = 0.0f;
    t.c_step = ag_bytes(AG_TILE_N);
    t.k = s->kw * s->c;
    t.k_runs = s->kh;
    t.a_skip = ag_bytes((ptrdiff_t)s->dilation_h * s->x_h - t.k);
    t.b_skip = 0;
    for (int32_t remaining = pixels * elements; remaining > 0; remaining -= AG_TILE_M) {
        const int32_t first = next.row * s->pool_w + next.column, count = ag_min(remaining, AG_TILE_M);
        const float *filters = w;
        if (repeats && count == AG_TILE_M) {
            for (int32_t i = 0; i < AG_TILE_M; i++) {
                t.a[i] += step;
            }
            next.x += step;
        } else {
            for (int32_t i = 0; i < AG_TILE_M; i++) { /* unused rows repeat the last one */
                t.a[i] = next.x;
                if (i + 1 < remaining) {
                    ag_next_pool_element(&next, s);
                }
            }
        }
        repeats = step != 0;
        for (int32_t o = 0; o < s->o; o += AG_TILE_N) {
            const int32_t outputs = ag_min(s->o - o, AG_TILE_N);
            ptrdiff_t at = o;
            for (int32_t j = 0; j < AG_TILE_N; j++) { /* unused columns repeat the last one */
                t.b[j] = filters;
                filters += j + 1 < outputs || outputs == AG_TILE_N ? filter : 0;
            }
            AG_MICROKERNEL(nt)(&t);
            for (int32_t i = 0, element = first, end; i < count; i = end, element = 0, at += s->o) {
                end = ag_min(i + elements - element, count);
                ag_pool_max(y + at, index + at, sums + (ptrdiff_t)i * AG_TILE_N, bias + o, element, end - i,
                            outputs);
            }
        }
        y += (ptrdiff_t)((first + count) / elements) * s->o;
        index += (ptrdiff_t)((first + count) / elements) * s->o;
    }
}

enum { AG_POOL_OUTPUTS = 32 }; /* floats on the stack */

/* Any pooled pixel: row p, column q. */
static AG_NOINLINE void ag_pool_pixel(const float *x, const float *w, const float *bias, float *y,
                                      uint8_t *index, int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    const ag_window_layout l = {s->kw,
                                s->c,
                                (ptrdiff_t)s->dilation_h * s->x_h,
                                (ptrdiff_t)s->dilation_w * s->x_w,
                                s->x_c,
                                (ptrdiff_t)s->kh * s->kw * s->c};
    const int32_t top = p * s->pool_stride_h, left = q * s->pool_stride_w;
    const int32_t rows = ag_min(s->pool_h, s->oh - top), columns = ag_min(s->pool_w, s->ow - left);
    float sums[AG_POOL_OUTPUTS];
    for (int32_t o = 0; o < s->o; o += AG_POOL_OUTPUTS) {
        const int32_t outputs = ag_min(s->o - o, AG_POOL_OUTPUTS);
        for (int32_t i = 0; i < rows; i++) {
            for (int32_t j = 0; j < columns; j++) {
                const ag_window_taps t = ag_window_taps_of(top + i, left + j, s);
                const int32_t tap = (t.row * s->kw + t.column) * s->c;
                if (t.rows > 0 && t.columns > 0) {
                    ag_window_products(sums, x + t.offset, t.rows, t.columns, w + o * l.filter + tap, outputs,
                                       &l);
                } else {
                    memset(sums, 0, (size_t)outputs * sizeof(float));
                }
                for (int32_t k = 0; k < outputs; k += AG_TILE_N) {
                    ag_pool_max(y + o + k, index + o + k, sums + k, bias + o + k, i * s->pool_w + j, 1,
                                ag_min(outputs - k, AG_TILE_N));
                }
            }
        }
    }
}

void AG_SYMBOL(conv2d_pool_f32)(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                                int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ag_pool_region interior = ag_pool_interior_of(s);
    const bool contiguous = ag_window_rows_contiguous(s);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++) {
            const bool inside = contiguous && p >= interior.top && p < interior.bottom;
            for (int32_t q = 0, pixels; q < s->pw; q += pixels) {
                pixels = inside && q == interior.first ? interior.last - q : 0;
                if (pixels > 0) {
                    ag_pool_tiles(x + ag_pool_corner(p, q, s), w, bias, y, index, pixels, s);
                } else {
                    pixels = 1;
                    ag_pool_pixel(x, w, bias, y, index, p, q, s);
                }
                y += (ptrdiff_t)pixels * s->o;
                index += (ptrdiff_t)pixels * s->o;
            }
        }
    }
}
