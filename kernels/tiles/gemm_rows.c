/* Products with rows that fill no tile: whole tiles by gemm, each of the other rows as the product of a
 * vector and a matrix. Where a matrix has fewer columns than any tile, gemm computes all rows.
 *
 *       +--------+
 *     m | gemm   |
 *       +--------+
 *       | gemv   |  at most AG_TILE_M - 1 rows
 *       +--------+                                     */
#include "tiles/epilogue.h"
#include "tiles/microkernel.h"

#include <stddef.h>

enum { FEWEST_COLUMNS = AG_NARROW_TILES ? 1 : AG_TILE_N };

static int32_t ag_rows_of_tiles(int32_t m, int32_t n) {
    return n < FEWEST_COLUMNS ? m : m - m % AG_TILE_M;
}

void AG_SYMBOL(gemm_rows_nn_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c,
                                 int32_t ldc, int32_t m, int32_t n, int32_t k, float alpha, float beta,
                                 const ag_epilogue *epilogue) {
    const int32_t rows = ag_rows_of_tiles(m, n);
    if (rows > 0) {
        AG_SYMBOL(gemm_nn_f32)(a, lda, b, ldb, c, ldc, rows, n, k, alpha, beta, NULL);
    }
    for (int32_t i = rows; i < m; i++) {
        AG_SYMBOL(gemv_t_f32)
        (b, ldb, a + (ptrdiff_t)i * lda, c + (ptrdiff_t)i * ldc, k, n, alpha, beta, NULL);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_rows_nt_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c,
                                 int32_t ldc, int32_t m, int32_t n, int32_t k, float alpha, float beta,
                                 const ag_epilogue *epilogue) {
    const int32_t rows = ag_rows_of_tiles(m, n);
    if (rows > 0) {
        AG_SYMBOL(gemm_nt_f32)(a, lda, b, ldb, c, ldc, rows, n, k, alpha, beta, NULL);
    }
    for (int32_t i = rows; i < m; i++) {
        AG_SYMBOL(gemv_f32)
        (b, ldb, a + (ptrdiff_t)i * lda, c + (ptrdiff_t)i * ldc, n, k, alpha, beta, NULL);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}
