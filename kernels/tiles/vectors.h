/* The vectors of a backend, which its vec.h defines:
 *
 *     LANES, vec           a vector; a float where LANES is 1.  zero, load, store, add
 *     RUN, vecs            RUN adjacent vectors, .val[RUN], which one step along a row processes.  load_run;
 *                          next_run, held_run and put_run move the pointer on; held_run is the load of a run
 *                          that is used again after another one was loaded
 *     PART, lane_mask      steps of PART floats at the end of a row, shorter than a vector: all of it where
 *                          there are masks, otherwise one float.  first_lanes, load_masked (other lanes: 0),
 *                          store_masked
 *     factors              up to four floats.   four_factors, one_factor, scaled; times(v, f, i): v * f[i];
 *                          plus(sum, v, f, i): sum + v * f[i]
 *     SUMS                 vectors of sums that the registers hold beside their operands; SUM_ROWS(v): rows
 * of v vectors that are added at a time; COLUMN_VECTORS: v of column_sums; AG_PARTIAL_BLOCKS 1: two to four
 * vectors at a time where the last is partial plus_product, total  sum + v * w by lanes; the sum of all lanes
 *
 * EACH (i, count) is a loop that the compiler unrolls, as `count` is a constant. */
#ifndef AG_TILES_VECTORS_H
#define AG_TILES_VECTORS_H

#include "ag_kernels.h"
#include "tiles/symbols.h"
#include "vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !AG_MOVE_INSTRUCTIONS
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

#if !AG_RUN_INSTRUCTIONS
typedef struct {
    vec val[RUN];
} vecs;

ALWAYS_INLINE vecs load_run(const float *p) {
    vecs r;
    EACH (q, RUN) {
        r.val[q] = load(p + q * LANES);
    }
    return r;
}

ALWAYS_INLINE vecs next_run(const float **p) {
    vecs r;
    EACH (q, RUN) {
        r.val[q] = next_vec(p);
    }
    return r;
}

ALWAYS_INLINE vecs held_run(const float **p) {
    return next_run(p);
}

ALWAYS_INLINE void put_run(float **p, vecs r) {
    EACH (q, RUN) {
        put_vec(p, r.val[q]);
    }
}
#endif

#if !AG_LANE_FACTORS
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

/* How the old value enters new + beta * old: it is not read where beta == 0. */
typedef enum { BETA_ZERO, BETA_ONE, BETA_ANY } beta_mode;

/* p = alpha * sum + beta * p, or the part of it that is selected; `partial` is a constant. */
ALWAYS_INLINE void ag_scale_add(bool partial, lane_mask mask, float *p, vec sum, float alpha, float beta) {
    sum = times(sum, one_factor(alpha), 0);
    if (beta != 0.0f) {
        sum = plus(sum, partial ? load_masked(p, mask) : load(p), one_factor(beta), 0);
    }
    if (partial) {
        store_masked(p, sum, mask);
    } else {
        store(p, sum);
    }
}

#endif
