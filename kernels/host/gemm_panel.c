/* The gemm micro-kernels for every number of rows and columns. */
#include "gemm_panel.h"

/* C[rows, columns] = alpha * A B + beta * C, columns in (LANES * (vectors - 1), LANES * vectors]; A[i, p] is
 * at a + i * a_i + p * a_p, B has leading dimension ldb. `rows`, `vectors` and `masked`, which says that the
 * last vector is partial, are constants. */
ALWAYS_INLINE void microkernel(int32_t rows, int32_t vectors, bool masked, const float *a, ptrdiff_t a_i,
                               ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,
                               int32_t k, int32_t columns, float alpha, float beta) {
    const int32_t last = columns - LANES * (vectors - 1);
    vec sum[ROWS][VECTORS] = {{{0}}};
    for (int32_t p = 0; p < k; p++, a += a_p, b += ldb) {
        vec row[VECTORS];
        for (int32_t v = 0; v < vectors; v++) {
            row[v] = masked && v == vectors - 1 ? load_partial(b + (ptrdiff_t)v * LANES, last)
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
            scale_add(c + (ptrdiff_t)v * LANES, sum[i][v], masked && v == vectors - 1 ? last : LANES, alpha,
                      beta);
        }
    }
}

/* The same for any columns up to LANES * VECTORS. */
ALWAYS_INLINE void microkernel_for(int32_t rows, const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b,
                                   ptrdiff_t ldb, float *c, ptrdiff_t ldc, int32_t k, int32_t columns,
                                   float alpha, float beta) {
    if (columns == LANES * VECTORS) {
        microkernel(rows, VECTORS, false, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else if (columns > LANES) {
        microkernel(rows, VECTORS, true, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else if (columns == LANES) {
        microkernel(rows, 1, false, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    } else {
        microkernel(rows, 1, true, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    }
}

void ag_host_gemm_panel(const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c,
                        ptrdiff_t ldc, int32_t m, int32_t columns, int32_t k, float alpha, float beta) {
    while (m >= 8 && ROWS == 8) {
        microkernel_for(ROWS == 8 ? 8 : 4, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 8, a += 8 * a_i, c += 8 * ldc;
    }
    while (m >= 4) {
        microkernel_for(4, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 4, a += 4 * a_i, c += 4 * ldc;
    }
    if (m >= 2) {
        microkernel_for(2, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
        m -= 2, a += 2 * a_i, c += 2 * ldc;
    }
    if (m > 0) {
        microkernel_for(1, a, a_i, a_p, b, ldb, c, ldc, k, columns, alpha, beta);
    }
}
