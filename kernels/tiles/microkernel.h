/* What a backend of blocks provides: a block of AG_TILE_M x AG_TILE_N sums of products, kept in registers
 * from the first product to the last. The gemm family (gemm.h) and the convolutions (conv2d.h) are written
 * once over it.
 *
 * The sum runs over `segments` runs of k products: one for a matrix product, one for each row of a window for
 * a convolution. A backend's folder has a tile_sizes.h with AG_TILE_M, AG_TILE_N and AG_TILE(name), and three
 * functions AG_TILE(nn), AG_TILE(nt), AG_TILE(tn), AG_TILE(tg). */
#ifndef AG_MICROKERNEL_H
#define AG_MICROKERNEL_H

#include "tiles/helpers.h"

#ifndef AG_TILE_M
#error "include the backend's own tile_sizes.h first"
#endif

/* C[M,N] = alpha * sum + beta * C, and C is not read where beta == 0. Steps and skips are in bytes. */
typedef struct {
    const float *a[AG_TILE_M]; /* "n": the rows of A, along which k runs; "t": a[0], and a_step from k to k */
    /* "t": the rows of B, along which k runs; "n": b[0], and b_step from k to k; "g": its columns, wherever
     * they lie, and b_step from k to k */
    const float *b[AG_TILE_N];
    int32_t a_step, b_step;
    int32_t k, k_runs;
    int32_t a_skip, b_skip; /* added to all pointers between two segments */
    float *c;
    int32_t c_step; /* from one row of C to the next */
    float alpha, beta;
} ag_tile;

typedef void ag_microkernel_fn(const ag_tile *t);
ag_microkernel_fn AG_MICROKERNEL(nn), AG_MICROKERNEL(nt), AG_MICROKERNEL(tn), AG_MICROKERNEL(tg);

#endif
