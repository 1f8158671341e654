/* Weight gradient of a pooled convolution; the sums of some rows of the window are in registers.
 *
 *     window    vectors of a row
 *     +------+------+---+
 *     |  0   |  1   |   |    at a time: one vector of up to 6 rows, or two of up to 3
 *     |  2   |  3   |   |
 *     +------+------+---+ */
#include "tiles/conv2d_pool_gradient.h"

enum { WINDOW_SUMS = 6 };

/* Adds to `rows` rows of sums dy times those of `count` windows at list[i].x + offset. The rows are `vectors`
 * vectors, of which the last has `last` elements, and sums that are `length` apart from row to row. `rows`
 * and `vectors` are constants. */
ALWAYS_INLINE void sum_rows(int32_t rows, int32_t vectors, float *sums, int32_t length,
                            const ag_weighted_window *list, int32_t count, ptrdiff_t offset,
                            ptrdiff_t row_step, int32_t last) {
    const lane_mask mask = first_lanes(last);
    vec sum[WINDOW_SUMS];
    for (int32_t e = 0; e < rows * vectors; e++) {
        sum[e] = zero();
    }
    for (int32_t i = 0; i < count; i++) {
        const vec factor = splat(list[i].dy);
        for (int32_t e = 0; e < rows * vectors; e++) {
            const float *row = list[i].x + offset + e / vectors * row_step + (ptrdiff_t)(e % vectors) * LANES;
            sum[e] += factor * get(e % vectors == vectors - 1, row, mask);
        }
    }
    for (int32_t e = 0; e < rows * vectors; e++) {
        float *dst = sums + (ptrdiff_t)(e / vectors) * length + (ptrdiff_t)(e % vectors) * LANES;
        const bool part = e % vectors == vectors - 1;
        put(part, dst, mask, get(part, dst, mask) + sum[e]);
    }
}

#define ROWS(rows, vectors)                                                                                  \
    case rows:                                                                                               \
        sum_rows(rows, vectors, to, row_length, list, count, i *row_step + k, row_step, last);               \
        break;

static void ag_sum_windows_host(float *sums, const ag_weighted_window *list, int32_t count,
                                ptrdiff_t row_step, int32_t rows, int32_t row_length) {
    for (int32_t k = 0, vectors; k < row_length; k += vectors * LANES) {
        const int32_t rest = row_length - k;
        vectors = rest > LANES ? 2 : 1;
        const int32_t last = rest < vectors * LANES ? rest - (vectors - 1) * LANES : LANES;
        for (int32_t i = 0, step; i < rows; i += step) {
            float *to = sums + (ptrdiff_t)i * row_length + k;
            step = rows - i < WINDOW_SUMS / vectors ? rows - i : WINDOW_SUMS / vectors;
            if (vectors == 2) {
                switch (step) { ROWS(1, 2) ROWS(2, 2) ROWS(3, 2) }
            } else {
                switch (step) { ROWS(1, 1) ROWS(2, 1) ROWS(3, 1) ROWS(4, 1) ROWS(5, 1) ROWS(6, 1) }
            }
        }
    }
}

#define AG_POOL_SUMS 1024
#define AG_POOL_LIST 1024
#define AG_SUM_WINDOWS ag_sum_windows_host
#include "tiles/conv2d_pool_dw.c" /* NOLINT(bugprone-suspicious-include) */
