/* Sums of a list of windows, in registers over the whole list.
 *
 *     window    vectors of a row
 *     +------+------+---+
 *     |  0   |  1   |   |    at a time: one vector of up to six rows, or two of up to three
 *     |  2   |  3   |   |
 *     +------+------+---+ */
#ifndef AG_TILES_SUM_WINDOWS_H
#define AG_TILES_SUM_WINDOWS_H

#include "tiles/vectors.h"

enum { WINDOW_SUMS = 6 };

/* Adds dy times `count` windows at list[i].x + offset to `rows` rows of sums, `length` apart. A row is
 * `vectors` vectors; where `partial`, the last one is masked with `mask`. `rows`, `vectors` and `partial` are
 * constants. */
ALWAYS_INLINE void ag_sum_rows(int32_t rows, int32_t vectors, bool partial, lane_mask mask, float *sums,
                               int32_t length, const ag_weighted_window *list, int32_t count,
                               ptrdiff_t offset, ptrdiff_t row_step) {
    vec sum[WINDOW_SUMS];
    EACH (e, rows * vectors) {
        const int32_t v = e % vectors;
        const float *p = sums + (ptrdiff_t)(e / vectors) * length + (ptrdiff_t)v * LANES;
        sum[e] = get(partial && v == vectors - 1, p, mask);
    }
    for (; count > 0; count--, list++) {
        const factors f = one_factor(list->dy);
        const float *row = list->x + offset;
        EACH (i, rows) {
            EACH (v, vectors) {
                vec *s = sum + (ptrdiff_t)i * vectors + v;
                *s = plus(*s, get(partial && v == vectors - 1, row + (ptrdiff_t)v * LANES, mask), f, 0);
            }
            row += row_step;
        }
    }
    EACH (e, rows * vectors) {
        const int32_t v = e % vectors;
        float *p = sums + (ptrdiff_t)(e / vectors) * length + (ptrdiff_t)v * LANES;
        put(partial && v == vectors - 1, p, mask, sum[e]);
    }
}

#define ROWS(rows, vectors, partial)                                                                         \
    case rows:                                                                                               \
        ag_sum_rows(rows, vectors, partial, mask, to, row_length, list, count, i *row_step + k, row_step);   \
        break;

#define UP_TO_SIX_ROWS(partial)                                                                              \
    ROWS(1, 1, partial)                                                                                      \
    ROWS(2, 1, partial)                                                                                      \
    ROWS(3, 1, partial)                                                                                      \
    ROWS(4, 1, partial)                                                                                      \
    ROWS(5, 1, partial)                                                                                      \
    ROWS(6, 1, partial)                                                                                      \
    default:                                                                                                 \
        break;

/* Adds dy times `count` windows to `rows` rows of sums, row_length each. The rows of a window are row_step
 * apart. */
static void ag_sum_windows(float *sums, const ag_weighted_window *list, int32_t count, ptrdiff_t row_step,
                           int32_t rows, int32_t row_length) {
    const bool masks = PART > 1;
    for (int32_t k = 0, width; k < row_length; k += width) {
        const int32_t rest = row_length - k, vectors = rest >= 2 * LANES || (masks && rest > LANES) ? 2 : 1;
        const int32_t before = (vectors - 1) * LANES, whole = before + LANES;
        width = rest >= whole ? whole : masks ? rest : PART;
        const lane_mask mask = first_lanes(width - before);
        for (int32_t i = 0, step; i < rows; i += step) {
            float *to = sums + (ptrdiff_t)i * row_length + k;
            step = rows - i < WINDOW_SUMS / vectors ? rows - i : WINDOW_SUMS / vectors;
            if (vectors == 2) {
                switch (step) {
                    ROWS(1, 2, masks)
                    ROWS(2, 2, masks)
                    ROWS(3, 2, masks)
                default:
                    break;
                }
            } else if (masks || rest < LANES) {
                switch (step) { UP_TO_SIX_ROWS(true) }
            } else {
                switch (step) { UP_TO_SIX_ROWS(false) }
            }
        }
    }
}

#undef ROWS
#undef UP_TO_SIX_ROWS

#endif
