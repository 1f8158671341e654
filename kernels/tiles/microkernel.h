/* The micro-kernel interface of a backend: one tile of C, AG_TILE_M x AG_TILE_N sums of products held in
 * registers over the whole reduction. The gemm family (gemm.c) and the convolutions (conv2d*.c) are written
 * once on top of it.
 *
 *               b[0] .. b[N-1]
 *                  |      |            a: AG_TILE_M rows or columns of A
 *     a[0]   -> +------------+         b: AG_TILE_N rows or columns of B
 *      ..       |  c: M x N  |         the reduction: k_runs runs of k products each,
 *     a[M-1] -> +------------+         a_skip and b_skip bytes between two runs
 *
 * A matrix product has one k-run, a convolution has one per row of the window. A backend provides
 * vec.h with AG_TILE_M and AG_TILE_N, and the four functions AG_MICROKERNEL(nn), (nt), (tn) and (tg). */
#ifndef AG_MICROKERNEL_H
#define AG_MICROKERNEL_H

#include "tiles/helpers.h"
#include "tiles/symbols.h"
#include "vec.h"

/* C[M,N] = alpha * sum + beta * C; C is not read where beta == 0. Steps and skips are in bytes. */
typedef struct {
    /* "n": the rows of A, contiguous along k; "t": a[0] only, a_step from k to k */
    const float *a[AG_TILE_M];
    /* "t": the rows of B, contiguous along k; "n": b[0] only, b_step from k to k; "g" (gather): the columns
     * of B at arbitrary addresses, b_step from k to k */
    const float *b[AG_TILE_N];
    int32_t a_step, b_step;
    int32_t k, k_runs;
    int32_t a_skip, b_skip; /* added to all pointers between two k-runs */
    float *c;
    int32_t c_step; /* from one row of C to the next */
    float alpha, beta;
} ag_tile;

typedef void ag_microkernel_fn(const ag_tile *t);
ag_microkernel_fn AG_MICROKERNEL(nn), AG_MICROKERNEL(nt), AG_MICROKERNEL(tn), AG_MICROKERNEL(tg);

#endif
