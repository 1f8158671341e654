/* Blocks of every size. */
#include "gemm_panel.h"

/* C[rows, columns] = alpha * A B + beta * C, columns in (LANES * (vectors - 1), LANES * vectors]; A[i, p]
 * lies at a + i * a_i + p * a_p, the rows of B are ldb apart. `rows`, `vectors` and `part`, which says that
 * the last vector is not whole, are constants. */
ALWAYS_INLINE void block(int32_t rows, int32_t vectors, bool part, const float *a, ptrdiff_t a_i,
                         ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc, int32_t k,
                         int32_t columns, float alpha, float beta) {
    const int32_t last = columns - LANES * (vectors - 1);
    vec sum[ROWS][VECTORS] = {{{0}}};
    for (int32_t p = 0; p < k; p++, a += a_p, b += ldb) {
        vec row[VECTORS];
        for (int32_t v = 0; v < vectors; v++) {
            row[v] = part && v == vectors - 1 ? load_part(b + (ptrdiff_t)v * LANES, last)
                                              : load(b + (ptrdiff_t)v * LANES);
        }
        for (int32_t i = 0; i < rows; i++) {
            const vec factor = splat(a[i * a_i]);
            for (int32_t v = 0; v < vectors; v++) {
                sum[i][v] += factor * row[v];
            }
        }
    }
    for (int32_t i = 0; i < rows; i++, c += ldc) {
        for (int32_t v = 0; v < vectors; v++) {
            finish(c + (ptrdiff_t)v * LANES, sum[i][v], part && v == vectors - 1 ? last : LANES, alpha, beta);
        }
    }
}

/* The same for any columns up to LANES * VECTORS. */
ALWAYS_INLINE void block_of(int32_t rows, const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b,
                            ptrdiff_t ldb, float *c, ptrdiff_t ldc, int32_t k, int32_t columns, float alpha,
                            float beta) {
    if (columns == LANES * VECTORS) {
        block(rows, VECTORS, false, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else if (columns > LANES) {
        block(rows, VECTORS, true, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else if (columns == LANES) {
        block(rows, 1, false, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else {
        block(rows, 1, true, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    }
}

void ag_host_gemm_panel(const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c,
                        ptrdiff_t ldc, int32_t m, int32_t columns, int32_t k, float alpha, float beta) {
    while (m >= 8 && ROWS == 8) {
        block_of(ROWS == 8 ? 8 : 4, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 8, a += 8 * a_i, c += 8 * ldc;
    }
    while (m >= 4) {
        block_of(4, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 4, a += 4 * a_i, c += 4 * ldc;
    }
    if (m >= 2) {
        block_of(2, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 2, a += 2 * a_i, c += 2 * ldc;
    }
    if (m > 0) {
        block_of(1, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    }
}
