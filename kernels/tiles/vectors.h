/* The vectors of a backend, of LANES floats. Its vec.h defines them; floats.h and operators.h have parts of
 * the definitions:
 *
 *     vec                a vector; a float where LANES is 1
 *       zero, splat, load, store, add
 *       between          lane by lane, v no less than low and no more than high; NaN stays NaN
 *       larger           a vec_mask of the lanes where v is larger than `best`, or NaN
 *       pick             v in the lanes of a vec_mask, otherwise w
 *       same_number, pick_number, load_numbers, put_numbers
 *                        a vec_number: numbers, bytes in memory; the numbers in the lanes of a vec_mask, and
 *                        the first `count` of them, PART or LANES
 *       plus_product     sum + v * w, lane by lane
 *       total            the sum of the lanes
 *       put_totals       y = alpha * the totals of four vectors + beta * old
 *     lane_mask          the end of a row, shorter than a vector, in steps of PART floats: all of
 *                        it where there are masks, otherwise one
 *       first_lanes, load_masked (other lanes are 0), store_masked
 *     multiplier         a factor of vectors
 *       multiplier_of, times_factor, plus_scaled
 *
 * and, with the backend's instructions or by the named header,
 *
 *     moves.h       next_vec and put_vec, which move the pointer on
 *     runs.h        a run, vecs, of so many vectors: load_run, next_run, put_run; held_run, the load of a run
 *                   that is used again after another one was loaded; second_run, the load of one beside
 *                   next_run; load_first and put_first, of a run that whole rows use
 *     factors.h     up to four factors: one_factor, four_factors, scaled; times(v, f, i): v * f[i],
 *                   plus(sum, v, f, i): sum + v * f[i]
 *     tile_rows.h   loads of microkernel.c: next_row, a tile_row of AG_TILE_N floats, four_factors_by and
 *                   one_factor_by move the pointer on by so many bytes; next_factor, next_factors of LANES,
 *                   next_gathered, of as many rows, move it over the floats that they read; transpose, LANES
 *                   vectors
 *     packing.h     ag_pack_columns: a panel of weights
 *     to_floats.h   ag_to_floats: integers as floats
 *
 * The other sizes of its loops are in its schedule (schedules.h). */
#ifndef AG_TILES_VECTORS_H
#define AG_TILES_VECTORS_H

#include "ag_kernels.h"
#include "tiles/symbols.h"
#include "vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
