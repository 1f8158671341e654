/* Sums of the rows of a matrix, each multiplied with an element of x, or with 1: gemv_t and column_sums.
 *
 *     x[0]   [ vector | vector | .. ]      several rows at a time, so that there are SUMS independent sums
 *     x[1]   [ vector | vector | .. ]
 *       ..
 *     y      [ sum    | sum    | .. ] */
#ifndef AG_TILES_ROW_SUMS_H
#define AG_TILES_ROW_SUMS_H

#include "tiles/vectors.h"

/* Constants: `vectors` adjacent vectors of columns; where `partial`, the last one is masked. */
typedef struct {
    int32_t vectors;
    bool partial, weighted;
} ag_columns;

/* sum[first ...] += the row at a, which moves on to its end, times factor i */
ALWAYS_INLINE void ag_add_row(ag_columns c, lane_mask mask, const float **a, factors f, int32_t i, vec *sum) {
    if (c.vectors % RUN == 0 && !c.partial) {
        EACH (r, c.vectors / RUN) {
            const vecs row = next_run(RUN, a);
            EACH (q, RUN) {
                vec *s = &sum[r * RUN + q];
                *s = c.weighted ? plus(*s, row.val[q], f, i) : add(*s, row.val[q]);
            }
        }
        return;
    }
    EACH (v, c.vectors) {
        const vec row = c.partial && v == c.vectors - 1 ? load_masked(*a, mask) : load(*a);
        sum[v] = c.weighted ? plus(sum[v], row, f, i) : add(sum[v], row);
        *a += LANES;
    }
}

/* total[vectors] += the sums of m rows */
ALWAYS_INLINE void ag_add_rows(ag_columns c, lane_mask mask, const float *a, ptrdiff_t lda, const float *x,
                               int32_t m, vec *total) {
    const int32_t held = c.vectors == 3 ? 2 : SUMS / c.vectors, rows = SUM_ROWS > 0 ? SUM_ROWS : held;
    const int32_t ways = rows * c.vectors > SUMS ? SUMS / c.vectors : rows;
    const ptrdiff_t next = lda - (ptrdiff_t)c.vectors * LANES;
    vec sum[SUMS];
    EACH (s, SUMS) {
        sum[s] = zero();
    }
    for (uint32_t k = (uint32_t)m / (uint32_t)rows; k > 0; k--) {
        factors f = one_factor(1.0f);
        EACH (t, rows) {
            if (c.weighted && (t % 4 == 0 || rows < 4)) {
                f = rows < 4 ? one_factor(x[t]) : four_factors(x + t);
            }
            ag_add_row(c, mask, &a, f, rows < 4 ? 0 : t % 4, sum + (ptrdiff_t)(t % ways) * c.vectors);
            a += next;
        }
        x += c.weighted ? rows : 0;
    }
    for (m &= rows - 1; m > 0; m--, a += next) {
        ag_add_row(c, mask, &a, one_factor(c.weighted ? *x++ : 1.0f), 0, sum);
    }
    EACH (s, ways) {
        EACH (v, c.vectors) {
            total[v] = add(total[v], sum[s * c.vectors + v]);
        }
    }
}

/* y = alpha * sums + beta * y; without weights, sums of blocks of AG_SUM_ROWS rows are added up */
ALWAYS_INLINE void ag_sums_of(ag_columns c, const float *a, ptrdiff_t lda, const float *x, float *y,
                              int32_t m, int32_t n, float alpha, float beta) {
    const int32_t whole = c.vectors - (c.partial ? 1 : 0);
    const int32_t last = n - whole * LANES;
    const lane_mask mask = first_lanes(last < LANES ? last : LANES);
    vec total[SUMS];
    EACH (v, c.vectors) {
        total[v] = zero();
    }
    if (c.weighted) {
        ag_add_rows(c, mask, a, lda, x, m, total);
    } else {
        for (; m > 0; m -= AG_SUM_ROWS, a += AG_SUM_ROWS * lda) {
            ag_add_rows(c, mask, a, lda, x, m < AG_SUM_ROWS ? m : AG_SUM_ROWS, total);
        }
    }
    EACH (v, c.vectors) {
        ag_scale_add(v == whole, mask, y + (ptrdiff_t)v * LANES, total[v], alpha, beta);
    }
}

/* All columns: `wide` vectors at a time, a run, one vector and its parts. */
ALWAYS_INLINE void ag_sums_of_rows(int32_t wide, bool weighted, const float *a, ptrdiff_t lda, const float *x,
                                   float *y, int32_t m, int32_t n, float alpha, float beta) {
    int32_t count;
#define SUMS_OF(vectors, partial, columns)                                                                   \
    ag_sums_of((ag_columns){vectors, partial, weighted}, a, lda, x, y, m, n, alpha, beta);                   \
    count = (columns), a += count, y += count, n -= count
    while (n >= wide * LANES) {
        SUMS_OF(wide, false, wide * LANES);
    }
    while (AG_PARTIAL_BLOCKS && n > 3 * LANES) {
        SUMS_OF(4, true, n < 4 * LANES ? n : 4 * LANES);
    }
    if (AG_PARTIAL_BLOCKS && n > 2 * LANES) {
        SUMS_OF(3, true, n);
    } else if (AG_PARTIAL_BLOCKS && n > LANES) {
        SUMS_OF(2, true, n);
    }
    while (!AG_PARTIAL_BLOCKS && RUN > 1 && wide > RUN && n >= RUN * LANES) {
        SUMS_OF(RUN, false, RUN * LANES);
    }
    while (!AG_PARTIAL_BLOCKS && n >= LANES) {
        SUMS_OF(1, false, LANES);
    }
    while (n > 0) {
        SUMS_OF(1, true, PART);
    }
#undef SUMS_OF
}

#endif
