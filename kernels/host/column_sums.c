/* Sums of four vectors of adjacent columns at a time, then of one. */
#include "ag_kernels.h"
#include "vec.h"

enum { VECTORS = 4 };

/* y[columns]: `vectors` vectors of columns, a constant; the last may be partial */
ALWAYS_INLINE void sums_of(int32_t vectors, const float *a, ptrdiff_t lda, float *y, int32_t m,
                           int32_t columns, float alpha, float beta) {
    const int32_t last = columns - (vectors - 1) * LANES;
    vec sums[VECTORS] = {{0}};
    while (m >= 2) {
        vec even[VECTORS] = {{0}}, odd[VECTORS] = {{0}};
        const int32_t end = m < AG_SUM_ROWS ? 0 : m - AG_SUM_ROWS;
        for (; m >= end + 2; m -= 2, a += 2 * lda) {
            for (int32_t v = 0; v < vectors; v++) {
                const float *p = a + (ptrdiff_t)v * LANES;
                even[v] += v == vectors - 1 ? load_partial(p, last) : load(p);
                odd[v] += v == vectors - 1 ? load_partial(p + lda, last) : load(p + lda);
            }
        }
        for (int32_t v = 0; v < vectors; v++) {
            sums[v] += even[v] + odd[v];
        }
    }
    for (int32_t v = 0; v < vectors; v++) {
        const int32_t count = v == vectors - 1 ? last : LANES;
        if (m > 0) {
            sums[v] += load_partial(a + (ptrdiff_t)v * LANES, count);
        }
        scale_add(y + (ptrdiff_t)v * LANES, sums[v], count, alpha, beta);
    }
}

void ag_column_sums_f32_host(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                             float beta) {
    int32_t j = 0;
    for (; n - j > (VECTORS - 1) * LANES; j += VECTORS * LANES) {
        const int32_t remaining = n - j;
        sums_of(VECTORS, a + j, lda, y + j, m, remaining < VECTORS * LANES ? remaining : VECTORS * LANES,
                alpha, beta);
    }
    for (; j < n; j += LANES) {
        sums_of(1, a + j, lda, y + j, m, n - j < LANES ? n - j : LANES, alpha, beta);
    }
}
