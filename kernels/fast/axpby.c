/* Four elements at a time; all are read before any is written. */
#include "ag_kernels.h"

static inline void add_four(const float *x, float *y, float alpha, float beta) {
    const float y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3];
    y[0] = alpha * x[0] + beta * y0;
    y[1] = alpha * x[1] + beta * y1;
    y[2] = alpha * x[2] + beta * y2;
    y[3] = alpha * x[3] + beta * y3;
}

void ag_axpby_f32_fast(const float *x, float *y, int32_t n, float alpha, float beta) {
    int32_t j = 0;
    if (beta == 1.0f) {
        for (; j + 4 <= n; j += 4) {
            add_four(x + j, y + j, alpha, 1.0f);
        }
    } else if (beta != 0.0f) {
        for (; j + 4 <= n; j += 4) {
            add_four(x + j, y + j, alpha, beta);
        }
    }
    for (; j < n; j++) {
        y[j] = beta == 0.0f ? alpha * x[j] : alpha * x[j] + beta * y[j];
    }
}
