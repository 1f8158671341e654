/* Max pooling and its adjoint, one tap at a time over all channels, which are contiguous:
 *
 *     tap 0: [ c0 c1 .. cn ]  init        y = x, index = 0
 *     tap 1: [ c0 c1 .. cn ]  update      y = max(y, x), index = 1 where x is larger
 *     ... */
#include "ag_kernels.h"
#include "tiles/vectors.h"

#include <math.h>
#include <string.h>

static inline void ag_pool_init(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    memcpy(y, x, (size_t)c * sizeof *y);
    memset(index, tap, (size_t)c);
}

/* `count` channels, which are a vector or a part of one. */
ALWAYS_INLINE void ag_pool_lanes(int32_t count, const float *x, float *y, uint8_t *index, int32_t tap) {
    const bool part = count < LANES;
    const lane_mask lanes = first_lanes(count);
    const vec next = get(part, x, lanes), best = get(part, y, lanes);
    const vec_mask mask = larger(next, best);
    put(part, y, lanes, pick(mask, next, best));
    put_index(index, mask, count, tap);
}

/* y = x where it is larger or NaN. */
static inline void ag_pool_update(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    int32_t k = 0;
    for (; k + LANES <= c; k += LANES) {
        ag_pool_lanes(LANES, x + k, y + k, index + k, tap);
    }
    for (; k < c; k += PART) {
        ag_pool_lanes(c - k < PART ? c - k : PART, x + k, y + k, index + k, tap);
    }
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

static void ag_window_max(const float *x, float *y, uint8_t *index, int32_t top, int32_t left,
                          const ag_pool2d_shape *s) {
    bool any = false;
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++) {
            const int32_t column = left + j * s->dilation_w;
            if (ag_in_range(row, s->h) && ag_in_range(column, s->w)) {
                const float *src = x + (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
                if (any) {
                    ag_pool_update(src, y, index, s->c, i * s->kw + j);
                } else {
                    ag_pool_init(src, y, index, s->c, i * s->kw + j);
                }
                any = true;
            }
        }
    }
    for (int32_t k = 0; !any && k < s->c; k++) {
        y[k] = -INFINITY;
        index[k] = 0;
    }
}

void AG_SYMBOL(max_pool2d_f32)(const float *x, float *y, uint8_t *index, int32_t n,
                               const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->c, index += s->c) {
                ag_window_max(x, y, index, p * s->stride_h - s->pad_top, q * s->stride_w - s->pad_left, s);
            }
        }
    }
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

static void ag_zero_image(float *dx, const ag_pool2d_shape *s) {
    const size_t pixel = (size_t)s->c * sizeof *dx;
    for (int32_t i = 0; i < s->h; i++) {
        if (s->x_w == s->c) {
            memset(dx + (ptrdiff_t)i * s->x_h, 0, (size_t)s->w * pixel);
        } else {
            for (int32_t j = 0; j < s->w; j++) {
                memset(dx + (ptrdiff_t)i * s->x_h + (ptrdiff_t)j * s->x_w, 0, pixel);
            }
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
        ag_zero_image(dx, s);
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
