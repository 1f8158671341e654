/* A tile of C that is stored in part, through a local array: a tile that is shifted back inside the matrix,
 * so that it overlaps its neighbour, or that has fewer columns than AG_TILE_N. */
#ifndef AG_TILES_LOCAL_TILE_H
#define AG_TILES_LOCAL_TILE_H

#include "tiles/microkernel.h"

/* Stores rows i0 and up, columns j0 ... end - 1, the first of them at `c`; steps are in elements. All of t
 * but c, c_step and beta is set. Where it is inlined, chains of calls take less stack; where it is not, loops
 * of other tiles have more registers. */
static inline void ag_local_tile(ag_microkernel_fn *kernel, ag_tile *t, float *c, ptrdiff_t i_step,
                                 ptrdiff_t j_step, int32_t i0, int32_t j0, int32_t end, float beta) {
    float sums[AG_TILE_M][AG_TILE_N];
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    kernel(t);
    for (int32_t i = i0; i < AG_TILE_M; i++, c += i_step) {
        float *dst = c;
        if (beta == 0.0f) {
            for (int32_t j = j0; j < end; j++, dst += j_step) {
                *dst = sums[i][j];
            }
        } else {
            for (int32_t j = j0; j < end; j++, dst += j_step) {
                *dst = sums[i][j] + beta * *dst;
            }
        }
    }
}

#endif
