/* Matrix times vector: several rows at once along the vector (gemv), or several vectors of columns (gemv_t).
 */
#include "ag_kernels.h"
#include "vec.h"

static inline float scale_add_f32(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

enum { ROWS = 8, QUAD = 4 };

/* y[rows] for the rows of A from `a` on; `rows` is a multiple of QUAD and a constant. */
ALWAYS_INLINE void row_sums(int32_t rows, const float *a, ptrdiff_t lda, const float *x, float *y, int32_t n,
                            float alpha, float beta) {
    vec sum[ROWS] = {{0}};
    int32_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        const vec right = load(x + j);
        for (int32_t i = 0; i < rows; i++) {
            sum[i] += load(a + i * lda + j) * right;
        }
    }
    if (j < n) {
        const vec right = load_partial(x + j, n - j);
        for (int32_t i = 0; i < rows; i++) {
            sum[i] += load_partial(a + i * lda + j, n - j) * right;
        }
    }
    for (int32_t i = 0; i < rows; i += QUAD) {
        const quad total = four_sums(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
        for (int32_t q = 0; q < QUAD; q++) {
            y[i + q] = scale_add_f32(total[q], alpha, beta, y + i + q);
        }
    }
}

static float row_sum(const float *a, const float *x, int32_t n) {
    vec sum = {0}, other = {0};
    int32_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        sum += load(a + j) * load(x + j);
        other += load(a + j + LANES) * load(x + j + LANES);
    }
    for (; j < n; j += LANES) {
        const int32_t count = n - j < LANES ? n - j : LANES;
        sum += load_partial(a + j, count) * load_partial(x + j, count);
    }
    const quad total = quarters(sum + other);
    return (total[0] + total[2]) + (total[1] + total[3]);
}

void ag_gemv_f32_host(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                      float alpha, float beta) {
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        row_sums(ROWS, a + (ptrdiff_t)i * lda, lda, x, y + i, n, alpha, beta);
    }
    if (i + QUAD <= m) {
        row_sums(QUAD, a + (ptrdiff_t)i * lda, lda, x, y + i, n, alpha, beta);
        i += QUAD;
    }
    for (; i < m; i++) {
        y[i] = scale_add_f32(row_sum(a + (ptrdiff_t)i * lda, x, n), alpha, beta, y + i);
    }
}

enum { SUM_VECTORS = 8 };

/* y[columns]: `vectors` vectors of columns, the last of which may be partial, and `unroll` rows at a time, so
 * that there are SUM_VECTORS independent sums. */
ALWAYS_INLINE void column_sums(int32_t vectors, int32_t unroll, const float *a, ptrdiff_t lda, const float *x,
                               float *y, int32_t m, int32_t columns, float alpha, float beta) {
    const int32_t last = columns - (vectors - 1) * LANES;
    vec sum[SUM_VECTORS] = {{0}};
    int32_t i = 0;
    for (; i + unroll <= m; i += unroll, a += unroll * lda) {
        for (int32_t t = 0; t < unroll; t++) {
            const vec factor = splat(x[i + t]);
            for (int32_t v = 0; v < vectors; v++) {
                const float *p = a + (ptrdiff_t)t * lda + (ptrdiff_t)v * LANES;
                sum[t * vectors + v] += factor * (v == vectors - 1 ? load_partial(p, last) : load(p));
            }
        }
    }
    for (; i < m; i++, a += lda) {
        for (int32_t v = 0; v < vectors; v++) {
            const float *p = a + (ptrdiff_t)v * LANES;
            sum[v] += x[i] * (v == vectors - 1 ? load_partial(p, last) : load(p));
        }
    }
    for (int32_t v = 0; v < vectors; v++) {
        vec total = sum[v];
        for (int32_t t = 1; t < unroll; t++) {
            total += sum[t * vectors + v];
        }
        scale_add(y + (ptrdiff_t)v * LANES, total, v == vectors - 1 ? last : LANES, alpha, beta);
    }
}

void ag_gemv_t_f32_host(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    int32_t j = 0;
    for (; n - j >= SUM_VECTORS * LANES; j += SUM_VECTORS * LANES) {
        column_sums(SUM_VECTORS, 1, a + j, lda, x, y + j, m, SUM_VECTORS * LANES, alpha, beta);
    }
    for (; n - j > 2 * LANES; j += 4 * LANES) {
        const int32_t remaining = n - j;
        if (remaining > 3 * LANES) {
            column_sums(4, 2, a + j, lda, x, y + j, m, remaining < 4 * LANES ? remaining : 4 * LANES, alpha,
                        beta);
        } else {
            column_sums(3, 2, a + j, lda, x, y + j, m, remaining, alpha, beta);
        }
    }
    if (n - j > LANES) {
        column_sums(2, 4, a + j, lda, x, y + j, m, n - j, alpha, beta);
    } else if (n - j > 0) {
        column_sums(1, 8, a + j, lda, x, y + j, m, n - j, alpha, beta);
    }
}
