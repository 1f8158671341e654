/* What a backend of blocks provides: a block of AG_TILE_M x AG_TILE_N sums of products, kept in registers
 * from the first product to the last. The gemm family (gemm.h) and the convolutions (conv2d.h) are written
 * once over it.
 *
 * The sum runs over `segments` runs of k products: one for a matrix product, one for each row of a window for
 * a convolution. A backend's folder has a tile_sizes.h with AG_TILE_M, AG_TILE_N and AG_TILE(name), and three
 * functions AG_TILE(nn), AG_TILE(nt), AG_TILE(tn). */
#ifndef AG_TILE_H
#define AG_TILE_H

#include <stddef.h>
#include <stdint.h>

#ifndef AG_TILE_M
#error "include the backend's own tile_sizes.h first"
#endif

/* C[M,N] = alpha * sum + beta * C, and C is not read where beta == 0. Steps and skips are in bytes. */
typedef struct {
    const float *a[AG_TILE_M]; /* "n": the rows of A, along which k runs; "t": a[0], and a_step from k to k */
    const float *b[AG_TILE_N]; /* "t": the rows of B, along which k runs; "n": b[0], and b_step from k to k */
    int32_t a_step, b_step;
    int32_t k, segments;
    int32_t a_skip, b_skip; /* added to all pointers between two segments */
    float *c;
    int32_t c_step; /* from one row of C to the next */
    float alpha, beta;
} ag_tile;

typedef void ag_tile_fn(const ag_tile *t);
ag_tile_fn AG_TILE(nn), AG_TILE(nt), AG_TILE(tn);

/* Keeps what is rarely called out of its caller's frame. */
#if defined __GNUC__
#define AG_NOINLINE __attribute__((noinline))
#else
#define AG_NOINLINE
#endif

static inline int32_t ag_bytes(ptrdiff_t floats) {
    return (int32_t)(floats * (ptrdiff_t)sizeof(float));
}

/* Elements [i0.., j0..] of a block that was moved back. */
static inline void ag_store_part(float *c, ptrdiff_t ldc, const float sums[AG_TILE_M][AG_TILE_N], int32_t i0,
                                 int32_t j0, float beta) {
    for (int32_t i = i0; i < AG_TILE_M; i++) {
        for (int32_t j = j0; j < AG_TILE_N; j++) {
            float *to = c + i * ldc + j;
            *to = beta == 0.0f ? sums[i][j] : sums[i][j] + beta * *to;
        }
    }
}

#endif
