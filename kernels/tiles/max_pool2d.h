/* The largest element of each window and what goes back to it, a tap at a time over all channels, which lie
 * side by side. A backend's file has the three loops over channels, static functions of these names:
 *
 *     ag_pool_first(x, y, index, c, tap)           y = x, index = tap
 *     ag_pool_more(x, y, index, c, tap)            the same where x is larger than y, or NaN
 *     ag_pool_back(dy, index, dx, c, offsets)      dx[offsets[index] + channel] += dy; offsets in elements */
#ifndef AG_TILES_MAX_POOL2D_H
#define AG_TILES_MAX_POOL2D_H

#include "ag_shapes.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { AG_POOL_TAPS = 16 }; /* the most elements of a window */

static inline bool ag_in(int32_t at, int32_t size) {
    return at >= 0 && at < size;
}

static void ag_window_max(const float *x, float *y, uint8_t *index, int32_t top, int32_t left,
                          const ag_pool2d_shape *s) {
    bool any = false;
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t row = top + i * s->dilation_h;
        for (int32_t j = 0; j < s->kw; j++) {
            const int32_t column = left + j * s->dilation_w;
            if (ag_in(row, s->h) && ag_in(column, s->w)) {
                const float *from = x + (ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w;
                if (any) {
                    ag_pool_more(from, y, index, s->c, i * s->kw + j);
                } else {
                    ag_pool_first(from, y, index, s->c, i * s->kw + j);
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

static void ag_max_pool2d_by_taps(const float *x, float *y, uint8_t *index, int32_t n,
                                  const ag_pool2d_shape *s) {
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0; q < s->ow; q++, y += s->c, index += s->c) {
                ag_window_max(x, y, index, p * s->stride_h - s->pad_top, q * s->stride_w - s->pad_left, s);
            }
        }
    }
}

/* A window that hangs over an edge: what an index names outside is dropped. */
static void ag_window_back(const float *dy, const uint8_t *index, float *dx, int32_t top, int32_t left,
                           const ag_pool2d_shape *s) {
    for (int32_t k = 0; k < s->c; k++) {
        const int32_t row = top + index[k] / s->kw * s->dilation_h;
        const int32_t column = left + index[k] % s->kw * s->dilation_w;
        if (ag_in(row, s->h) && ag_in(column, s->w)) {
            dx[(ptrdiff_t)row * s->x_h + (ptrdiff_t)column * s->x_w + k] += dy[k];
        }
    }
}

static void ag_clear_pixels(float *dx, const ag_pool2d_shape *s) {
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

static void ag_max_pool2d_dx_by_taps(const float *dy, const uint8_t *index, float *dx, int32_t n,
                                     const ag_pool2d_shape *s) {
    const int32_t high = (s->kh - 1) * s->dilation_h, wide = (s->kw - 1) * s->dilation_w;
    int32_t offsets[AG_POOL_TAPS];
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            offsets[i * s->kw + j] = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w;
        }
    }
    for (; n > 0; n--, dx += s->x_n) {
        ag_clear_pixels(dx, s);
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t top = p * s->stride_h - s->pad_top;
            const bool rows_inside = top >= 0 && top + high < s->h;
            for (int32_t q = 0; q < s->ow; q++, dy += s->c, index += s->c) {
                const int32_t left = q * s->stride_w - s->pad_left;
                if (rows_inside && left >= 0 && left + wide < s->w) {
                    float *corner = dx + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                    ag_pool_back(dy, index, corner, s->c, offsets);
                } else {
                    ag_window_back(dy, index, dx, top, left, s);
                }
            }
        }
    }
}

#endif
