/* Sums of columns, one at a time: this order of the sums is the specification. The sums of blocks of rows are
 * added up: rounding errors grow with the root of the rows in a block and of the number of blocks, not with
 * the root of all rows. */
#include "ag_kernels.h"

#include <stddef.h>

void ag_column_sums_f32_ref(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                            float beta) {
    const int32_t rows = 64; /* AG_SUM_ROWS, written out: programs without this header contain the function */
    for (int32_t j = 0; j < n; j++) {
        const float *column = a + j;
        float sum = 0.0f;
        for (int32_t i = 0; i < m;) {
            const int32_t end = m - i < rows ? m : i + rows;
            float block = 0.0f;
            for (; i < end; i++) {
                block += column[(ptrdiff_t)i * lda];
            }
            sum += block;
        }
        y[j] = beta == 0.0f ? alpha * sum : alpha * sum + beta * y[j];
    }
}
