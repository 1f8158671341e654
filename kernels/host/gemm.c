/* The gemm family over the micro-kernels: vectors along the columns of C where the rows of B are contiguous
 * along n, or are packed to be; otherwise dot products along k. */
#include "ag_kernels.h"
#include "pack_b.h"
#include "tiles/epilogue.h"
#include "tiles/microkernel.h"
#include "tiles/vectors.h"

enum {
    PANEL = AG_TILE_N,
    PACKED = 4096, /* floats of B that are copied: half of an L1 cache */
    PACKED_K = PACKED / PANEL,
    FEW_ROWS = 128, /* that caches hold without a copy */
    MANY_ROWS = 64, /* whose products take long enough for B to be loaded before them */
    SUM_ROWS = 192,
    LINE = 64 / sizeof(float), /* of a cache */
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

/* Begins to load rows that are to be read by columns: a core does not foresee such reads. */
static void prefetch_rows(const float *p, ptrdiff_t ld, int32_t rows, int32_t columns) {
    for (; rows > 0; rows--, p += ld) {
        for (int32_t j = 0; j < columns; j += LINE) {
            __builtin_prefetch(p + j);
        }
    }
}

/* The first `columns` columns of k rows of B. */
static void copy_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t columns) {
    for (; k > 0; k--, b += ldb, dst += PANEL) {
        for (int32_t e = 0; e < columns; e += LANES) {
            const bool part = columns - e < LANES;
            store(dst + e, get(part, b + e, first_lanes(part ? columns - e : LANES)));
        }
    }
}

/* C += A' B in blocks of at most SUM_ROWS x PANEL sums, over at most PACKED_K rows of A and of B at a time,
 * of which those of B are copied into a buffer: rows that are far apart fall on the same lines of a cache. */
static void by_blocks(const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c, ptrdiff_t ldc,
                      int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    float packed[PACKED_K * PANEL], sums[SUM_ROWS * PANEL];
    for (int32_t j = 0; j < n; j += PANEL) {
        const int32_t columns = ag_min(n - j, PANEL);
        for (int32_t i = 0, rows; i < m; i += rows) {
            rows = ag_min(m - i, SUM_ROWS);
            for (int32_t p = 0, length; p < k; p += length) {
                length = ag_min(k - p, PACKED_K);
                copy_columns(packed, b + p * ldb + j, ldb, length, columns);
                const int32_t next = p + length < k ? p + length : 0, from = next > 0 ? j : j + PANEL;
                prefetch_rows(b + next * ldb + from, ldb, ag_min(k - next, PACKED_K),
                              ag_min(n - from, PANEL));
                product(AG_MICROKERNEL(tn), a + p * lda + i, 1, lda, packed, PANEL, sums, PANEL, rows,
                        columns, length, 1.0f, p > 0 ? 1.0f : 0.0f);
            }
            for (int32_t r = 0; r < rows; r++) {
                for (int32_t e = 0; e < columns; e += LANES) {
                    const bool part = columns - e < LANES;
                    ag_scale_add(part, first_lanes(part ? columns - e : LANES), c + (i + r) * ldc + j + e,
                                 load(sums + (ptrdiff_t)r * PANEL + e), alpha, beta);
                }
            }
        }
    }
}

/* C = alpha A' B + beta C in blocks of rows, of which A is multiplied by alpha in a copy: a pass over A in
 * place of one over C. At most FEW_ROWS rows of A. */
static void by_scaled_rows(const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c,
                           ptrdiff_t ldc, int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    float scaled[PACKED];
    const int32_t block = PACKED / k / LANES * LANES;
    for (int32_t i = 0, rows; i < m; i += rows) {
        rows = ag_min(m - i, block);
        const int32_t step = (rows + LANES - 1) / LANES * LANES;
        for (int32_t p = 0; p < k; p++) {
            for (int32_t e = 0; e < rows; e += LANES) {
                const bool part = rows - e < LANES;
                const vec v = get(part, a + p * lda + i + e, first_lanes(part ? rows - e : LANES));
                store(scaled + (ptrdiff_t)p * step + e, v * alpha);
            }
        }
        product(AG_MICROKERNEL(tn), scaled, 1, step, b, ldb, c + i * ldc, ldc, rows, n, k, 1.0f, beta);
    }
}

void ag_gemm_tn_f32_host(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    if (k > FEW_ROWS && m > PANEL) { /* copying takes as long as a row of products */
        by_blocks(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    } else if (alpha != 1.0f && k <= FEW_ROWS && n >= 4 * k && m >= 2 * AG_TILE_M) {
        by_scaled_rows(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    } else {
        if (m * k <= PACKED) {
            prefetch_rows(a, lda, k, m);
        }
        if (m >= MANY_ROWS) {
            prefetch_rows(b, ldb, k, n);
        }
        product(AG_MICROKERNEL(tn), a, 1, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

/* C by panels of PACKED_K rows of B', each packed (transposed) into a buffer; where the sizes of a call are
 * constants, packing takes less time with them. */
ALWAYS_INLINE void by_packed_panels(const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *c,
                                    ptrdiff_t ldc, int32_t m, int32_t n, int32_t k, float alpha, float beta) {
    float packed[PACKED_K * PANEL];
    int32_t length;
    do {
        length = ag_min(k, PACKED_K);
        for (int32_t j = 0; j < n; j += PANEL) {
            const int32_t columns = ag_min(n - j, PANEL);
            ag_pack_columns(packed, b + j * ldb, ldb, length, columns);
            product(AG_MICROKERNEL(nn), a, lda, 1, packed, PANEL, c + j, ldc, m, columns, length, alpha,
                    beta);
        }
        a += length;
        b += length;
        k -= length;
        beta = 1.0f;
    } while (k > 0);
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
    /* Packing B costs one pass over its elements, dot products cost a horizontal sum for each element of C. A
     * sum is complete before C is read. */
    if (8 * m >= k && (k <= PACKED_K || beta == 0.0f)) {
        by_packed_panels(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta);
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
