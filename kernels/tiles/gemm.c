/* The gemm family over micro-kernel tiles (microkernel.h).
 *
 *             n                          full tiles are written to C by the micro-kernel;
 *       +----+----+--+                   an edge tile is shifted back inside the matrix, so that it
 *     m | t0 | t1 |e2|                   overlaps its neighbour, is computed into a local array, and
 *       +----+----+--+                   only its new rows and columns are stored;
 *       | e3 | e4 |e5|                   a matrix smaller than one tile uses scalar loops
 *       +----+----+--+
 *
 * A' B' is the transpose of B A: all its tiles are computed into a local array, whose columns are rows of C.
 */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/local_tile.h"

#include <stdbool.h>
#include <stddef.h>

/* An operand as the micro-kernels read it: element [i, p] at data + i * i_step + p * p_step; one of the two
 * steps is 1. */
typedef struct {
    const float *data;
    ptrdiff_t i_step, p_step;
} ag_operand;

/* The result: element [i, j] at data + i * i_step + j * j_step; one of the two steps is 1. */
typedef struct {
    float *data;
    ptrdiff_t i_step, j_step;
} ag_result;

static void ag_gemm_scalar(const ag_operand *a, const ag_operand *b, const ag_result *c, int32_t m, int32_t n,
                           int32_t k, float alpha, float beta) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            const float *pa = a->data + i * a->i_step, *pb = b->data + j * b->i_step;
            float sum = 0.0f, *dst = c->data + i * c->i_step + j * c->j_step;
            for (int32_t p = 0; p < k; p++, pa += a->p_step, pb += b->p_step) {
                sum += *pa * *pb;
            }
            *dst = beta == 0.0f ? alpha * sum : alpha * sum + beta * *dst;
        }
    }
}

static void ag_gemm_tiled(ag_microkernel_fn *tile, ag_operand a, ag_operand b, ag_result c, int32_t m,
                          int32_t n, int32_t k, float alpha, float beta) {
    ag_tile t;
    if (m < AG_TILE_M || n < AG_TILE_N) {
        ag_gemm_scalar(&a, &b, &c, m, n, k, alpha, beta);
        return;
    }
    t.k = k;
    t.k_runs = 1;
    t.alpha = alpha;
    t.a_step = ag_bytes(a.p_step);
    t.b_step = ag_bytes(b.p_step);
    ag_one_tile(&t);
    for (int32_t i = 0; i < m; i += AG_TILE_M) {
        const int32_t row_overlap = i + AG_TILE_M > m ? i + AG_TILE_M - m : 0;
        float *dst = c.data + (i - row_overlap) * c.i_step;
        int32_t j = 0;
        for (int32_t q = 0; q < AG_TILE_M; q++) {
            t.a[q] = a.data + (i - row_overlap + q) * a.i_step;
        }
        t.c = dst;
        t.c_step = ag_bytes(c.i_step);
        t.beta = beta;
        if (row_overlap == 0 && c.j_step == 1) {
            j = ag_tile_run(tile, &t, n, b.data, b.i_step, AG_TILE_N);
        }
        for (; j < n; j += AG_TILE_N) {
            const int32_t column_overlap = j + AG_TILE_N > n ? j + AG_TILE_N - n : 0;
            for (int32_t q = 0; q < AG_TILE_N; q++) {
                t.b[q] = b.data + (j - column_overlap + q) * b.i_step;
            }
            ag_local_tile(tile, &t, dst + (j - column_overlap) * c.j_step, c.i_step, c.j_step, row_overlap,
                          column_overlap, AG_TILE_N, beta);
        }
    }
}

void AG_SYMBOL(gemm_nn_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    ag_gemm_tiled(AG_MICROKERNEL(nn), (ag_operand){a, lda, 1}, (ag_operand){b, 1, ldb},
                  (ag_result){c, ldc, 1}, m, n, k, alpha, beta);
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_nt_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    ag_gemm_tiled(AG_MICROKERNEL(nt), (ag_operand){a, lda, 1}, (ag_operand){b, ldb, 1},
                  (ag_result){c, ldc, 1}, m, n, k, alpha, beta);
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_tn_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    ag_gemm_tiled(AG_MICROKERNEL(tn), (ag_operand){a, 1, lda}, (ag_operand){b, 1, ldb},
                  (ag_result){c, ldc, 1}, m, n, k, alpha, beta);
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_tt_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    ag_gemm_tiled(AG_MICROKERNEL(nn), (ag_operand){b, ldb, 1}, (ag_operand){a, 1, lda},
                  (ag_result){c, 1, ldc}, n, m, k, alpha, beta);
    AG_FINISH(epilogue, c, ldc, m, n);
}
