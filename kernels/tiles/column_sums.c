/* Sums of columns, without weights (row_sums.h). */
#include "tiles/moving_pointers.h"
#include "tiles/row_sums.h"

void AG_SYMBOL(column_sums_f32)(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                                float beta) {
    ag_sums_of_rows(COLUMN_VECTORS, false, a, lda, a, y, m, n, alpha, beta);
}
