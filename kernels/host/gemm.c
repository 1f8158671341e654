/* The gemm family over the micro-kernels: vectors along the columns of C where the rows of B are contiguous
 * along n, or are packed to be; otherwise dot products along k. */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/microkernel.h"
#include "tiles/vectors.h"

enum {
    PANEL = AG_TILE_N,
    PACKED = 4096, /* floats of B that are copied: half of an L1 cache */
    PACKED_K = PACKED / PANEL,
    FEW_ROWS = 128, /* that caches hold without a copy */
};

/* C = alpha * A B + beta * C, A[i, p] at a + i * a_i + p * a_p: `tiles` is nn where a_p is 1, tn where a_i
 * is. */
static void product(ag_microkernel_fn *tiles, const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b,
                    ptrdiff_t ldb, float *c, ptrdiff_t ldc, int32_t m, int32_t n, int32_t k, float alpha,
                    float beta) {
    ag_tile t = {.a = {a}, .b = {b}, .k = k, .k_runs = 1, .rows = m, .columns = n};
    t.c = c;
    t.alpha = alpha;
    t.beta = beta;
    t.a_row = ag_bytes(a_i);
    t.a_step = ag_bytes(a_p);
    t.b_step = ag_bytes(ldb);
    t.c_step = ag_bytes(ldc);
    ag_set_blocks(&t, 1, 0, 0);
    tiles(&t);
}

void ag_gemm_nn_f32_host(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    product(AG_MICROKERNEL(nn), a, lda, 1, b, ldb, c, ldc, m, n, k, alpha, beta);
    AG_FINISH(epilogue, c, ldc, m, n);
}

/* Copies `columns` columns of k rows of B to rows of PANEL elements. */
static void copy_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t columns) {
    for (; k > 0; k--, b += ldb, dst += PANEL) {
        for (int32_t e = 0; e < columns; e += LANES) {
            const bool part = columns - e < LANES;
            store(dst + e, get(part, b + e, first_lanes(part ? columns - e : LANES)));
        }
    }
}

/* C by panels of PACKED_K rows of B, or with `nt` of B', each packed into a buffer. Inlined, as packing takes
 * less time where sizes are constants. */
ALWAYS_INLINE void by_packed_panels(bool nt, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb,
                                    float *c, ptrdiff_t ldc, int32_t m, int32_t n, int32_t k, float alpha,
                                    float beta) {
    float packed[PACKED_K * PANEL];
    int32_t length;
    do {
        length = ag_min(k, PACKED_K);
        for (int32_t j = 0; j < n; j += PANEL) {
            const int32_t columns = ag_min(n - j, PANEL);
            if (nt) {
                ag_pack_columns(packed, b + j * ldb, ldb, length, columns);
                product(AG_MICROKERNEL(nn), a, lda, 1, packed, PANEL, c + j, ldc, m, columns, length, alpha,
                        beta);
            } else {
                copy_columns(packed, b + j, ldb, length, columns);
                product(AG_MICROKERNEL(tn), a, 1, lda, packed, PANEL, c + j, ldc, m, columns, length, alpha,
                        beta);
            }
        }
        a += length * (nt ? 1 : lda);
        b += length * (nt ? 1 : ldb);
        k -= length;
        beta = 1.0f;
    } while (k > 0);
}

/* Whether a sum is complete before C is read. */
static bool may_pack(int32_t k, float beta) {
    return k <= PACKED_K || beta == 0.0f;
}

void ag_gemm_tn_f32_host(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    /* Rows of B that are far apart fall on the same lines of a cache. */
    if (k > FEW_ROWS && m >= 2 * PANEL && may_pack(k, beta)) {
        by_packed_panels(false, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    } else {
        product(AG_MICROKERNEL(tn), a, 1, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

/* C as dot products along k. */
static void by_dots(const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,
                    int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    ag_tile t = {.a = {a}, .k = k, .k_runs = 1, .alpha = alpha, .beta = beta, .rows = m};
    t.a_row = ag_bytes(lda);
    t.c_step = ag_bytes(ldc);
    for (int32_t j = 0; j < n; j += AG_TILE_N) {
        t.columns = ag_min(n - j, AG_TILE_N);
        t.c = c + j;
        for (int32_t i = 0; i < t.columns; i++, b += ldb) {
            t.b[i] = b;
        }
        AG_MICROKERNEL(nt)(&t);
    }
}

void ag_gemm_nt_f32_host(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    /* Packing B costs one pass over its elements, dot products cost a horizontal sum for each element of C.
     */
    if (8 * m >= k && may_pack(k, beta)) {
        by_packed_panels(true, a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    } else {
        by_dots(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void ag_gemm_tt_f32_host(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    float packed[AG_TILE_M * PANEL];
    for (int32_t i = 0; i < m; i += PANEL) {
        const int32_t columns = ag_min(m - i, PANEL);
        for (int32_t j = 0; j < n; j += AG_TILE_M) {
            const int32_t rows = ag_min(n - j, AG_TILE_M);
            product(AG_MICROKERNEL(nn), b + (ptrdiff_t)j * ldb, ldb, 1, a + i, lda, packed, PANEL, rows,
                    columns, k, alpha, 0.0f);
            for (int32_t p = 0; p < columns; p++) {
                float *dst = c + (ptrdiff_t)(i + p) * ldc + j;
                for (int32_t q = 0; q < rows; q++) {
                    const float sum = packed[q * PANEL + p];
                    dst[q] = beta == 0.0f ? sum : sum + beta * dst[q];
                }
            }
        }
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}
