/* The gemm family over blocks (tile.h). A block that would reach over the border of the matrix is moved back
 * inside, and only its new elements are stored; what is narrower than a block goes by plain loops. */
#ifndef AG_TILES_GEMM_H
#define AG_TILES_GEMM_H

#include "tiles/microkernel.h"

#include <stdbool.h>
#include <stddef.h>

/* A matrix as blocks see it: element [i, p] at data + i * i_step + p * p_step; one of both steps is 1. */
typedef struct {
    const float *data;
    ptrdiff_t i_step, p_step;
} ag_operand;

/* Elements [i0.., j0..] of a block that was moved back. */
static void ag_store_part(float *c, ptrdiff_t ldc, const float sums[AG_TILE_M][AG_TILE_N], int32_t i0,
                          int32_t j0, float beta) {
    for (int32_t i = i0; i < AG_TILE_M; i++) {
        for (int32_t j = j0; j < AG_TILE_N; j++) {
            float *to = c + i * ldc + j;
            *to = beta == 0.0f ? sums[i][j] : sums[i][j] + beta * *to;
        }
    }
}

static void ag_narrow(const ag_operand *a, const ag_operand *b, float *c, ptrdiff_t ldc, int32_t m, int32_t n,
                      int32_t k, float alpha, float beta) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            const float *pa = a->data + i * a->i_step, *pb = b->data + j * b->i_step;
            float sum = 0.0f, *to = c + i * ldc + j;
            for (int32_t p = 0; p < k; p++, pa += a->p_step, pb += b->p_step) {
                sum += *pa * *pb;
            }
            *to = beta == 0.0f ? alpha * sum : alpha * sum + beta * *to;
        }
    }
}

/* The block at column j, of which i_back rows and j_back columns are there already, by way of its own sums.
 */
static AG_NOINLINE void ag_gemm_part(ag_microkernel_fn *tile, ag_tile *t, float *c, ptrdiff_t ldc,
                                     int32_t i_back, int32_t j_back, float beta) {
    float sums[AG_TILE_M][AG_TILE_N];
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    tile(t);
    ag_store_part(c, ldc, (const float (*)[AG_TILE_N])sums, i_back, j_back, beta);
}

static void ag_gemm_tiled(ag_microkernel_fn *tile, ag_operand a, ag_operand b, float *c, ptrdiff_t ldc,
                          int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    ag_tile t;
    if (m < AG_TILE_M || n < AG_TILE_N) {
        ag_narrow(&a, &b, c, ldc, m, n, k, alpha, beta);
        return;
    }
    t.k = k;
    t.k_runs = 1;
    t.alpha = alpha;
    t.a_step = ag_bytes(a.p_step);
    t.b_step = ag_bytes(b.p_step);
    for (int32_t i = 0; i < m; i += AG_TILE_M) {
        const int32_t i_back = i + AG_TILE_M > m ? i + AG_TILE_M - m : 0;
        const float *column = b.data;
        float *to = c + (i - i_back) * ldc;
        int32_t j = 0;
        for (int32_t q = 0; q < AG_TILE_M; q++) {
            t.a[q] = a.data + (i - i_back + q) * a.i_step;
        }
        t.c = to;
        t.c_step = ag_bytes(ldc);
        t.beta = beta;
        for (; i_back == 0 && j + AG_TILE_N <= n; j += AG_TILE_N) {
            for (int32_t q = 0; q < AG_TILE_N; q++, column += b.i_step) {
                t.b[q] = column;
            }
            tile(&t);
            t.c += AG_TILE_N;
        }
        for (; j < n; j += AG_TILE_N) {
            const int32_t j_back = j + AG_TILE_N > n ? j + AG_TILE_N - n : 0;
            for (int32_t q = 0; q < AG_TILE_N; q++) {
                t.b[q] = b.data + (j - j_back + q) * b.i_step;
            }
            ag_gemm_part(tile, &t, to + j - j_back, ldc, i_back, j_back, beta);
        }
    }
}

#endif
