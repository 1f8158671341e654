/* The outer product added to a matrix: four rows at a time where beta == 1, with AG_ALL_MODES for any beta,
 * otherwise row by row. */
#include "tiles/moving_pointers.h"
#include "tiles/row_updates.h"

ALWAYS_INLINE void ag_update_all(beta_mode mode, float *a, ptrdiff_t lda, const float *x, const float *y,
                                 int32_t m, int32_t n, float alpha, float beta) {
    for (; m >= 4; m -= 4, a += 4 * lda, x += 4) {
        ag_update_rows(mode, 4, true, a, lda, scaled(four_factors(x), alpha), y, n, beta);
    }
    for (; m > 0; m--, a += lda, x++) {
        ag_update_rows(mode, 1, true, a, lda, one_factor(alpha * *x), y, n, beta);
    }
}

void AG_SYMBOL(ger_f32)(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    if (AG_ALL_MODES) {
        if (beta == 0.0f) {
            ag_update_all(BETA_ZERO, a, lda, x, y, m, n, alpha, beta);
        } else if (beta == 1.0f) {
            ag_update_all(BETA_ONE, a, lda, x, y, m, n, alpha, beta);
        } else {
            ag_update_all(BETA_ANY, a, lda, x, y, m, n, alpha, beta);
        }
        return;
    }
    for (; beta == 1.0f && m >= 4; m -= 4, a += 4 * (ptrdiff_t)lda, x += 4) {
        ag_update_rows(BETA_ONE, 4, true, a, lda, scaled(four_factors(x), alpha), y, n, beta);
    }
    for (; m > 0; m--, a += lda, x++) {
        AG_SYMBOL(axpby_f32)(y, a, n, alpha * *x, beta);
    }
}
