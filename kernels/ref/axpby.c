/* Scaled vector addition. */
#include "ag_kernels.h"

void ag_axpby_f32_ref(const float *x, float *y, int32_t n, float alpha, float beta) {
    for (int32_t j = 0; j < n; j++) {
        y[j] = beta == 0.0f ? alpha * x[j] : alpha * x[j] + beta * y[j];
    }
}
