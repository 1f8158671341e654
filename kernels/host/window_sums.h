/* Sums over windows: tiles of PIXELS pixels x one vector of output channels, held in registers.
 *
 *     x[0] .. x[PIXELS-1]: the windows        w[taps][LANES]: packed weights
 *     sum[pixel] += x[pixel][offset[tap]] (broadcast) * w[tap] */
#ifndef AG_HOST_WINDOW_SUMS_H
#define AG_HOST_WINDOW_SUMS_H

#include "vec.h"

/* The largest number of taps (elements of a window) whose weights are packed at once, and the pixels of a
 * tile. */
enum { TAPS = 512, PIXELS = LANES == 16 ? 8 : 4 };

/* The valid taps of a window along one axis that starts at `start`: first_valid_tap up to, and without,
 * end_valid_tap. */
static inline int32_t first_valid_tap(int32_t start, int32_t dilation) {
    return start < 0 ? (-start + dilation - 1) / dilation : 0;
}

static inline int32_t end_valid_tap(int32_t start, int32_t count, int32_t dilation, int32_t extent) {
    const int32_t last = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
    return last < count ? last : count;
}

/* Adds, for each of `pixels` windows that start at x[0], x[1], ..., the products of their taps with weights
 * w[taps][LANES]; tap t is at offset[t] from the start. `pixels` is a constant. */
ALWAYS_INLINE void accumulate_windows(int32_t pixels, vec *sum, const float *const *x, const int32_t *offset,
                                      const float *w, int32_t taps) {
    vec s[PIXELS];
    for (int32_t i = 0; i < pixels; i++) {
        s[i] = sum[i];
    }
    for (int32_t t = 0; t < taps; t++) {
        const vec weight = load(w + (ptrdiff_t)t * LANES);
        for (int32_t i = 0; i < pixels; i++) {
            s[i] += splat(x[i][offset[t]]) * weight;
        }
    }
    for (int32_t i = 0; i < pixels; i++) {
        sum[i] = s[i];
    }
}

/* Not inlined: the pointers of all windows stay in registers only without the register pressure of the
 * caller. */
#if defined __GNUC__
#define NOINLINE static __attribute__((noinline, unused))
#else
#define NOINLINE static
#endif

/* The sums of PIXELS windows whose `rows` rows are `length` contiguous elements of x, `row_step` elements
 * from row to row. */
NOINLINE void accumulate_contiguous(vec *sum, const float *const *x, ptrdiff_t row_step, const float *w,
                                    int32_t rows, int32_t length) {
    const float *src[PIXELS];
    vec s[PIXELS] = {{0}};
    for (int32_t u = 0; u < PIXELS; u++) {
        src[u] = x[u];
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t t = 0; t < length; t++, w += LANES) {
            const vec weight = load(w);
            for (int32_t u = 0; u < PIXELS; u++) {
                s[u] += src[u][t] * weight;
            }
        }
        for (int32_t u = 0; u < PIXELS; u++) {
            src[u] += row_step;
        }
    }
    for (int32_t u = 0; u < PIXELS; u++) {
        sum[u] = s[u];
    }
}

/* The same for at most HALF_LANES output channels. */
NOINLINE void accumulate_contiguous_half(vec *sum, const float *const *x, ptrdiff_t row_step, const float *w,
                                         int32_t rows, int32_t length) {
    const float *src[PIXELS];
    half_vec s[PIXELS] = {{0}};
    for (int32_t u = 0; u < PIXELS; u++) {
        src[u] = x[u];
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t t = 0; t < length; t++, w += LANES) {
            const half_vec weight = *(const unaligned_half_vec *)w;
            for (int32_t u = 0; u < PIXELS; u++) {
                s[u] += src[u][t] * weight;
            }
        }
        for (int32_t u = 0; u < PIXELS; u++) {
            src[u] += row_step;
        }
    }
    for (int32_t u = 0; u < PIXELS; u++) {
        sum[u] = widen(s[u]);
    }
}

#endif
