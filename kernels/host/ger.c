/* The outer product of two vectors, added to a matrix: several rows for each vector of y. */
#include "ag_kernels.h"
#include "vec.h"

enum { ROWS = 4 };

/* How the old element of A enters the result. */
typedef enum { BETA_ZERO, BETA_ONE, BETA_ANY } beta_mode;

ALWAYS_INLINE vec added(beta_mode mode, vec sum, vec old, float beta) {
    return mode == BETA_ZERO ? sum : mode == BETA_ONE ? sum + old : sum + beta * old;
}

/* `rows` rows of A; `rows` and `old` are constants. */
ALWAYS_INLINE void update(beta_mode mode, int32_t rows, float *a, ptrdiff_t lda, const float *x,
                          const float *y, int32_t n, float alpha, float beta) {
    vec factor[ROWS];
    for (int32_t i = 0; i < rows; i++) {
        factor[i] = splat(alpha * x[i]);
    }
    int32_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        const vec right = load(y + j);
        for (int32_t i = 0; i < rows; i++) {
            float *dst = a + i * lda + j;
            store(dst, added(mode, factor[i] * right, mode == BETA_ZERO ? zero() : load(dst), beta));
        }
    }
    if (j < n) {
        const vec right = load_partial(y + j, n - j);
        for (int32_t i = 0; i < rows; i++) {
            float *dst = a + i * lda + j;
            const vec old = mode == BETA_ZERO ? zero() : load_partial(dst, n - j);
            store_partial(dst, added(mode, factor[i] * right, old, beta), n - j);
        }
    }
}

ALWAYS_INLINE void update_all(beta_mode mode, float *a, ptrdiff_t lda, const float *x, const float *y,
                              int32_t m, int32_t n, float alpha, float beta) {
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        update(mode, ROWS, a + i * lda, lda, x + i, y, n, alpha, beta);
    }
    for (; i < m; i++) {
        update(mode, 1, a + i * lda, lda, x + i, y, n, alpha, beta);
    }
}

void ag_ger_f32_host(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    if (beta == 0.0f) {
        update_all(BETA_ZERO, a, lda, x, y, m, n, alpha, beta);
    } else if (beta == 1.0f) {
        update_all(BETA_ONE, a, lda, x, y, m, n, alpha, beta);
    } else {
        update_all(BETA_ANY, a, lda, x, y, m, n, alpha, beta);
    }
}
