/* The outer product added to a matrix: four rows at a time where beta == 1, otherwise row by row. */
#include "tiles/moving_pointers.h"
#include "tiles/row_updates.h"

void AG_SYMBOL(ger_f32)(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    int32_t i = 0;
    for (; beta == 1.0f && i + 4 <= m; i += 4, a += 4 * (ptrdiff_t)lda) {
        ag_update_rows(BETA_ONE, 4, true, a, lda, scaled(four_factors(x + i), alpha), y, n, beta);
    }
    for (; i < m; i++, a += lda) {
        AG_SYMBOL(axpby_f32)(y, a, n, alpha * x[i], beta);
    }
}
