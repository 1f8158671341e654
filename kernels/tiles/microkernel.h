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
 * the four functions AG_MICROKERNEL(nn), (nt), (tn) and (tg). With AG_GENERAL_TILES (schedules.h), a call
 * computes any number of tiles, partial ones included, and sums over a third axis. */
#ifndef AG_MICROKERNEL_H
#define AG_MICROKERNEL_H

#include "tiles/helpers.h"
#include "tiles/symbols.h"

#include <stdbool.h>

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
    /* With AG_TILE_RUNS: the columns of C, in tiles side by side: a multiple of AG_TILE_N, for "tn" any even
     * number from AG_TILE_N on; and bytes from the rows of B of a tile to the rows of the next one, where
     * columns of B are adjacent. */
    int32_t run, b_next;
    /* With AG_GENERAL_TILES */
    int32_t rows, columns; /* of C; where columns of B are in b[], at most AG_TILE_N */
    /* Without c_rows: row i of A is at a[0] + i * a_row. With c_rows: at a[i], row i of C is at c_rows[i] +
     * c_column, and there are at most AG_TILE_M rows. */
    int32_t a_row;
    float *const *c_rows; /* NULL: none */
    int32_t c_column;
    int32_t k_blocks;           /* of k_runs each; 1 in "nt" */
    ptrdiff_t a_block, b_block; /* from the first product of a block to the first product of the next block */
} ag_tile;

/* Distances between blocks in elements. */
static inline void ag_set_blocks(ag_tile *t, int32_t blocks, ptrdiff_t a_block, ptrdiff_t b_block) {
    if (AG_GENERAL_TILES) {
        t->k_blocks = blocks;
        t->a_block = a_block * (ptrdiff_t)sizeof(float);
        t->b_block = b_block * (ptrdiff_t)sizeof(float);
    }
}

typedef void ag_microkernel_fn(const ag_tile *t);
ag_microkernel_fn AG_MICROKERNEL(nn), AG_MICROKERNEL(nt), AG_MICROKERNEL(tn), AG_MICROKERNEL(tg);
/* With AG_SCRATCH_PANEL: C[run, AG_PANEL_COLUMNS] = sum: `run` rows of A from a[0] on, a_step apart; rows of
 * B follow each other. */
ag_microkernel_fn AG_MICROKERNEL(np);

/* The products of one element of C, whose operands begin at a and b, for matrices smaller than a tile. */
static inline float ag_scalar_sum(const ag_tile *t, const float *a, const float *b) {
    const int32_t floats = (int32_t)sizeof(float);
    float sum = 0.0f;
    for (int32_t run = t->k_runs; run > 0; run--) {
        for (int32_t k = t->k; k > 0; k--, a += t->a_step / floats, b += t->b_step / floats) {
            sum += *a * *b;
        }
        a += t->a_skip / floats;
        b += t->b_skip / floats;
    }
    return sum;
}

/* The tile to come is a single one. */
static inline void ag_one_tile(ag_tile *t) {
    if (AG_TILE_RUNS) {
        t->run = AG_TILE_N;
    }
}

/* The tile to come is a run of `columns` columns; b as in ag_set_columns. */
static inline void ag_set_tile_run(ag_tile *t, int32_t columns, const float *b, ptrdiff_t b_column,
                                   int32_t pointers) {
    t->run = columns;
    for (int32_t j = 0; j < pointers; j++, b += b_column) {
        t->b[j] = b;
    }
    t->b_next = ag_bytes(b_column * AG_TILE_N);
}

/* Sets b for as many of `columns` columns of C, at least AG_TILE_N, as one call of `kernel` computes, and
 * returns how many. Columns of B are `b_column` elements apart from b on; the kernel reads so many pointers
 * to them, 1 or AG_TILE_N. */
static inline int32_t ag_set_columns(ag_tile *t, ag_microkernel_fn *kernel, int32_t columns, const float *b,
                                     ptrdiff_t b_column, int32_t pointers) {
    if (!AG_TILE_RUNS) {
        for (int32_t j = 0; j < pointers; j++, b += b_column) {
            t->b[j] = b;
        }
        return AG_TILE_N;
    }
    const bool even = kernel == AG_MICROKERNEL(tn) && columns > AG_TILE_N;
    const int32_t left =
        even ? columns % 2 * (columns > 5 ? 3 : 1) : columns % AG_TILE_N; /* most of a tile */
    ag_set_tile_run(t, columns - left, b, b_column, pointers);
    return columns - left;
}

/* Tiles side by side in C, as many of `columns` as whole tiles are; returns how many. Moves c on by these. */
static inline int32_t ag_tile_run(ag_microkernel_fn *kernel, ag_tile *t, int32_t columns, const float *b,
                                  ptrdiff_t b_column, int32_t pointers) {
    int32_t computed = 0;
    while (columns - computed >= AG_TILE_N) {
        const int32_t width = ag_set_columns(t, kernel, columns - computed, b, b_column, pointers);
        kernel(t);
        computed += width;
        t->c += width;
        b += width * b_column;
        if (AG_TILE_RUNS) { /* less than a tile remains */
            break;
        }
    }
    ag_one_tile(t);
    return computed;
}

#endif
