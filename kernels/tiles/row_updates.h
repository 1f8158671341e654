/* Rows of a matrix to which multiples of one row are added: what axpby, ger and axpy_rows.h are made of.
 *
 *     y       [ run | run | .. | vectors | parts ]    loaded once for all rows
 *     row 0   [     |     |                      ]    = factor[0] * y + beta * row 0
 *      ..     [     |     |                      ]     .. */
#ifndef AG_TILES_ROW_UPDATES_H
#define AG_TILES_ROW_UPDATES_H

#include "tiles/vectors.h"

ALWAYS_INLINE vec ag_updated(beta_mode mode, vec y, vec old, factors f, int32_t i, float beta) {
    return mode == BETA_ZERO  ? times(y, f, i)
           : mode == BETA_ONE ? plus(old, y, f, i)
                              : plus(times(y, f, i), old, one_factor(beta), 0);
}

/* The next `vectors` vectors of y and of `rows` rows. Parameters other than pointers and factors are
 * constants. */
ALWAYS_INLINE void ag_update_run(beta_mode mode, int32_t rows, int32_t vectors, float **row, factors f,
                                 const float **y, float beta) {
    const vecs v = held_run(vectors, y);
    EACH (i, rows) {
        vecs old = mode == BETA_ZERO ? v : load_run(vectors, row[i]);
        EACH (q, vectors) {
            old.val[q] = ag_updated(mode, v.val[q], old.val[q], f, i, beta);
        }
        put_run(vectors, &row[i], old);
    }
}

/* The first n elements of `rows` rows from a on, at most four; `mode`, which follows from beta, `rows` and
 * `by_runs` are constants. */
ALWAYS_INLINE void ag_update_rows(beta_mode mode, int32_t rows, bool by_runs, float *a, ptrdiff_t lda,
                                  factors f, const float *y, int32_t n, float beta) {
    uint32_t left = (uint32_t)n;
    float *row[4];
    EACH (i, rows) {
        row[i] = a + i * lda;
    }
    if (by_runs) {
        left %= RUN * LANES;
        for (uint32_t k = (uint32_t)n / (RUN * LANES); k > 0; k--) {
            ag_update_run(mode, rows, RUN, row, f, &y, beta);
        }
        for (const uint32_t run = AG_SHORT_RUN * LANES; run > 0 && left >= run; left -= run) {
            ag_update_run(mode, rows, AG_SHORT_RUN, row, f, &y, beta);
        }
    }
    for (uint32_t k = left / LANES; k > 0; k--) {
        const vec v = next_vec(&y);
        EACH (i, rows) {
            const vec old = mode == BETA_ZERO ? zero() : load(row[i]);
            put_vec(&row[i], ag_updated(mode, v, old, f, i, beta));
        }
    }
    for (n &= LANES - 1; n > 0; n -= PART, y += PART) {
        const lane_mask part = first_lanes(n);
        const vec v = load_masked(y, part);
        EACH (i, rows) {
            const vec old = mode == BETA_ZERO ? zero() : load_masked(row[i], part);
            store_masked(row[i], ag_updated(mode, v, old, f, i, beta), part);
            row[i] += PART;
        }
    }
}

#endif
