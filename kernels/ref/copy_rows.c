/* Copies of rows between arrays of different strides. */
#include "ag_kernels.h"

#include <stddef.h>

void ag_copy_rows_f32_ref(const float *x, int32_t lda, float *y, int32_t ldc, int32_t m, int32_t n) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            y[(ptrdiff_t)i * ldc + j] = x[(ptrdiff_t)i * lda + j];
        }
    }
}
