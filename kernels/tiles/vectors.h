/* The vectors of a backend, which its vec.h defines:
 *
 *     LANES, vec           a vector; a float where LANES is 1.  zero, load, store, add
 *     RUN, vecs            RUN adjacent vectors, .val[RUN], which one step along a row processes.  load_run;
 *                          next_run, held_run and put_run move the pointer on; held_run is the load of a run
 *                          that is used again after another one was loaded
 *     PART, lane_mask      steps of PART floats at the end of a row, shorter than a vector: all of it where
 *                          there are masks, otherwise one float.  first_lanes, load_masked (other lanes: 0),
 *                          store_masked
 *     factors              up to four floats, .  four_factors, one_factor, scaled; times(v, f, i): v * f[i];
 *                          plus(sum, v, f, i): sum + v * f[i]
 *     plus_product, total  sum + v * w by lanes; the sum of all lanes
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

/* How the old value enters new + beta * old: it is not read where beta == 0. */
typedef enum { BETA_ZERO, BETA_ONE, BETA_ANY } beta_mode;

ALWAYS_INLINE beta_mode ag_mode_of(float beta) {
    return beta == 0.0f ? BETA_ZERO : beta == 1.0f ? BETA_ONE : BETA_ANY;
}

#endif
