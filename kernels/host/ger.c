/* The outer product of two vectors, added to a matrix: several rows for each vector of y. */
#include "ag_kernels.h"
#include "vec.h"

enum { ROWS = 4 };

/* How A's old element counts. */
typedef enum { DROPPED, KEPT, SCALED } old_element;

ALWAYS_INLINE vec added(old_element old, vec sum, vec before, float beta) {
    return old == DROPPED ? sum : old == KEPT ? sum + before : sum + beta * before;
}

/* `rows` rows of A; `rows` and `old` are constants. */
ALWAYS_INLINE void update(old_element old, int32_t rows, float *a, ptrdiff_t lda, const float *x,
                          const float *y, int32_t n, float alpha, float beta) {
    vec factor[ROWS];
    for (int32_t i = 0; i < rows; i++) {
        factor[i] = splat(alpha * x[i]);
    }
    int32_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        const vec right = load(y + j);
        for (int32_t i = 0; i < rows; i++) {
            float *to = a + i * lda + j;
            store(to, added(old, factor[i] * right, old == DROPPED ? zero() : load(to), beta));
        }
    }
    if (j < n) {
        const vec right = load_part(y + j, n - j);
        for (int32_t i = 0; i < rows; i++) {
            float *to = a + i * lda + j;
            const vec before = old == DROPPED ? zero() : load_part(to, n - j);
            store_part(to, added(old, factor[i] * right, before, beta), n - j);
        }
    }
}

ALWAYS_INLINE void update_all(old_element old, float *a, ptrdiff_t lda, const float *x, const float *y,
                              int32_t m, int32_t n, float alpha, float beta) {
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        update(old, ROWS, a + i * lda, lda, x + i, y, n, alpha, beta);
    }
    for (; i < m; i++) {
        update(old, 1, a + i * lda, lda, x + i, y, n, alpha, beta);
    }
}

void ag_ger_f32_host(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    if (beta == 0.0f) {
        update_all(DROPPED, a, lda, x, y, m, n, alpha, beta);
    } else if (beta == 1.0f) {
        update_all(KEPT, a, lda, x, y, m, n, alpha, beta);
    } else {
        update_all(SCALED, a, lda, x, y, m, n, alpha, beta);
    }
}
