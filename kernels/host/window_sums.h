/* Sums over windows: several pixels times vectors of output channels, kept in registers. */
#ifndef AG_HOST_WINDOW_SUMS_H
#define AG_HOST_WINDOW_SUMS_H

#include "vec.h"

/* The most taps (elements of a window) whose weights are turned around at once, and pixels in registers. */
enum { TAPS = 512, PIXELS = LANES == 16 ? 8 : 4 };

/* The elements of a window along one axis that lie inside it, the window beginning at `start`: from the first
 * on, and before the last. */
static inline int32_t first_inside(int32_t start, int32_t apart) {
    return start < 0 ? (-start + apart - 1) / apart : 0;
}

static inline int32_t last_inside(int32_t start, int32_t count, int32_t apart, int32_t extent) {
    const int32_t last = start >= extent ? 0 : (extent - 1 - start) / apart + 1;
    return last < count ? last : count;
}

/* Adds, for each of `pixels` windows that begin at x[0], x[1], ..., the products of their taps with weights
 * w[taps][LANES]; tap t lies at offset[t] behind the beginning. `pixels` is a constant. */
ALWAYS_INLINE void add_windows(int32_t pixels, vec *sum, const float *const *x, const int32_t *offset,
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

/* Not inlined: the pointers of all windows stay in registers only where nothing else asks for them. */
#if defined __GNUC__
#define ALONE static __attribute__((noinline, unused))
#else
#define ALONE static
#endif

/* The sums of PIXELS windows whose `rows` rows are runs of `length` elements of x, `down` elements from row
 * to row. */
ALONE void run_windows(vec *sum, const float *const *x, ptrdiff_t down, const float *w, int32_t rows,
                       int32_t length) {
    const float *from[PIXELS];
    vec s[PIXELS] = {{0}};
    for (int32_t u = 0; u < PIXELS; u++) {
        from[u] = x[u];
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t t = 0; t < length; t++, w += LANES) {
            const vec weight = load(w);
            for (int32_t u = 0; u < PIXELS; u++) {
                s[u] += from[u][t] * weight;
            }
        }
        for (int32_t u = 0; u < PIXELS; u++) {
            from[u] += down;
        }
    }
    for (int32_t u = 0; u < PIXELS; u++) {
        sum[u] = s[u];
    }
}

/* The same where only the first NARROW channels are wanted. */
ALONE void narrow_run_windows(vec *sum, const float *const *x, ptrdiff_t down, const float *w, int32_t rows,
                              int32_t length) {
    const float *from[PIXELS];
    narrow_vec s[PIXELS] = {{0}};
    for (int32_t u = 0; u < PIXELS; u++) {
        from[u] = x[u];
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t t = 0; t < length; t++, w += LANES) {
            const narrow_vec weight = *(const unaligned_narrow_vec *)w;
            for (int32_t u = 0; u < PIXELS; u++) {
                s[u] += from[u][t] * weight;
            }
        }
        for (int32_t u = 0; u < PIXELS; u++) {
            from[u] += down;
        }
    }
    for (int32_t u = 0; u < PIXELS; u++) {
        sum[u] = widened(s[u]);
    }
}

#endif
