/* Sums of columns as products of rows and ones, AG_SUM_ROWS rows and up to BLOCK columns at a time. Several
 * rows of a narrow matrix without gaps are one row:
 *
 *     a0 b0                                          m = 5, n = 2, folded = 2
 *     a1 b1              a0 b0 a1 b1
 *     a2 b2      ->      a2 b2 a3 b3       ->        sums + their second half + the row that is left
 *     a3 b3
 *     a4 b4 */
#include "ag_kernels.h"

#include <stddef.h>

enum { BLOCK = 48, NARROW = 8 };

#define EIGHT 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f
static const float ones[AG_SUM_ROWS] = {EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT};

void ag_column_sums_f32_armv7em(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                                float beta) {
    const int32_t folded = lda == n && n < NARROW && m >= 2 * NARROW ? 2 * NARROW / n : 1;
    float sums[BLOCK];
    for (int32_t j = 0; j < n; j += BLOCK) {
        const int32_t width = n - j < BLOCK ? n - j : BLOCK, folds = m / folded;
        const float *row = a + j;
        for (int32_t i = 0, rows; i < folds; i += rows, row += (ptrdiff_t)rows * folded * lda) {
            rows = folds - i < AG_SUM_ROWS ? folds - i : AG_SUM_ROWS;
            ag_gemv_t_f32_armv7em(row, folded * lda, ones, sums, rows, folded * width, 1.0f,
                                  i == 0 ? 0.0f : 1.0f, NULL);
        }
        for (int32_t q = n; q < folded * n; q++) {
            sums[q % n] += sums[q];
        }
        for (int32_t q = 0; q < m % folded * n; q++) {
            sums[q % n] += row[q];
        }
        ag_axpby_f32_armv7em(sums, y + j, width, alpha, beta);
    }
}
