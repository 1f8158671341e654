/* The vectors of a backend, which its vec.h defines; floats.h and operators.h have some of it:
 *
 *     LANES, vec         a vector; a float where LANES is 1
 *       zero, splat, load, store, add
 *       between          lane by lane, v no less than low and no more than high; NaN stays NaN
 *       larger           a vec_mask of the lanes where v is larger than `best`, or NaN
 *       pick             v in the lanes of a vec_mask, otherwise w
 *       same_number, pick_number, load_numbers, put_numbers
 *                        a vec_number: numbers, bytes in memory; that of the lanes of a vec_mask, and the
 *                        first `count` of them, PART or LANES
 *       plus_product     sum + v * w, lane by lane
 *       total            the sum of the lanes
 *       put_totals       y = alpha * the totals of four vectors + beta * old
 *     PART, lane_mask    the end of a row, shorter than a vector, in steps of PART floats: all of
 *                        it where there are masks, otherwise one
 *       first_lanes, load_masked (other lanes are 0), store_masked
 *     multiplier         what a vector is multiplied with
 *       multiplier_of, times_factor, plus_scaled
 *     RUN                vectors that one step along a row processes
 *     SUMS               vectors of sums that the registers hold beside their operands
 *     SUM_ROWS(v)        rows of v vectors that are added up at a time
 *     COLUMN_VECTORS     vectors of columns of column_sums
 *     GEMV_ROWS          rows of gemv
 *     FINISH_VECTORS     vectors of columns of an epilogue
 *     DEPTHWISE_RESULTS  results of the depthwise micro-kernel
 *     AG_PARTIAL_BLOCKS  1: two to four vectors of columns at a time, the last one partial
 *     AG_ALL_MODES       1: ger has code of its own for every beta
 *
 * Where it has instructions for them, it also defines
 *
 *     AG_MOVE_INSTRUCTIONS  next_vec and put_vec, which move the pointer on
 *     AG_RUN_INSTRUCTIONS   a run, vecs, of so many vectors: load_run, next_run, put_run; held_run, the
 *                           load of a run that is used again after another one was loaded
 *     AG_SHORT_RUN          vectors of the runs at the end of a row, where LANES is 1; then gemv loads
 *                           two runs of AG_GEMV_RUN at a time, next_run and second_run, and load_first
 *                           and put_first move what is used for whole rows
 *     AG_LANE_FACTORS       up to four factors: one_factor, four_factors, scaled;
 *                           times(v, f, i): v * f[i], plus(sum, v, f, i): sum + v * f[i]
 *     AG_TILE_INSTRUCTIONS  what microkernel.c reads: next_row, a tile_row of AG_TILE_N
 *                           floats, four_factors_by and one_factor_by move the pointer on by so many
 *                           bytes; next_factor, next_factors of LANES, next_gathered, of as many
 *                           rows, by what they read; transpose, LANES vectors */
#ifndef AG_TILES_VECTORS_H
#define AG_TILES_VECTORS_H

#include "ag_kernels.h"
#include "tiles/symbols.h"
#include "vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef AG_MOVE_INSTRUCTIONS
ALWAYS_INLINE vec next_vec(const float **p) {
    const vec v = load(*p);
    *p += LANES;
    return v;
}

ALWAYS_INLINE void put_vec(float **p, vec v) {
    store(*p, v);
    *p += LANES;
}
#endif

#ifndef AG_RUN_INSTRUCTIONS
typedef struct {
    vec val[RUN];
} vecs;

ALWAYS_INLINE vecs load_run(int32_t vectors, const float *p) {
    vecs r;
    EACH (q, vectors) {
        r.val[q] = load(p + (ptrdiff_t)q * LANES);
    }
    return r;
}

ALWAYS_INLINE vecs next_run(int32_t vectors, const float **p) {
    vecs r;
    EACH (q, vectors) {
        r.val[q] = next_vec(p);
    }
    return r;
}

ALWAYS_INLINE vecs held_run(int32_t vectors, const float **p) {
    return next_run(vectors, p);
}

ALWAYS_INLINE void put_run(int32_t vectors, float **p, vecs r) {
    EACH (q, vectors) {
        put_vec(p, r.val[q]);
    }
}
#endif

#ifndef AG_SHORT_RUN
#define AG_SHORT_RUN 0
#endif
#ifndef AG_GEMV_RUN
#define AG_GEMV_RUN RUN
#define second_run next_run
#endif

#ifndef AG_LANE_FACTORS
typedef struct {
    multiplier val[4];
} factors;

ALWAYS_INLINE factors four_factors(const float *p) {
    return (factors){{multiplier_of(p[0]), multiplier_of(p[1]), multiplier_of(p[2]), multiplier_of(p[3])}};
}

ALWAYS_INLINE factors one_factor(float f) {
    return (factors){{multiplier_of(f)}};
}

ALWAYS_INLINE factors scaled(factors f, float alpha) {
    EACH (i, 4) {
        f.val[i] = alpha * f.val[i];
    }
    return f;
}

ALWAYS_INLINE vec times(vec v, factors f, int32_t i) {
    return times_factor(v, f.val[i]);
}

ALWAYS_INLINE vec plus(vec sum, vec v, factors f, int32_t i) {
    return plus_scaled(sum, v, f.val[i]);
}
#endif

/* A vector, or the selected lanes of it; `part` is a constant. */
ALWAYS_INLINE vec get(bool part, const float *p, lane_mask mask) {
    return part ? load_masked(p, mask) : load(p);
}

ALWAYS_INLINE void put(bool part, float *p, lane_mask mask, vec v) {
    if (part) {
        store_masked(p, v, mask);
    } else {
        store(p, v);
    }
}

/* How the old value enters new + beta * old: it is not read where beta == 0. */
typedef enum { BETA_ZERO, BETA_ONE, BETA_ANY } beta_mode;

/* p = alpha * sum + beta * p, or the part of it that is selected; `partial` is a constant. */
ALWAYS_INLINE void ag_scale_add(bool partial, lane_mask mask, float *p, vec sum, float alpha, float beta) {
    sum = times(sum, one_factor(alpha), 0);
    if (beta != 0.0f) {
        sum = plus(sum, get(partial, p, mask), one_factor(beta), 0);
    }
    put(partial, p, mask, sum);
}

#endif
