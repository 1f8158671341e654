/* The outer product added to a matrix, four rows at a time. */
#include "ag_kernels.h"
#include "vec.h"

#if defined __aarch64__
#include "gemv_ger_a64.h"
#else
#include "gemv_ger_a32.h"
#endif

void ag_ger_f32_neon(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    const int32_t whole = n & ~3;
    int32_t i = 0;
    for (; beta == 1.0f && i + 4 <= m; i += 4, a += 4 * (ptrdiff_t)lda) {
        float ax[4];
        vst1q_f32(ax, vmulq_n_f32(vld1q_f32(x + i), alpha));
        axpy_4_rows(a, lda, ax, y, whole);
        for (int32_t j = whole; j < n; j++) {
            for (int32_t r = 0; r < 4; r++) {
                a[r * (ptrdiff_t)lda + j] += ax[r] * y[j];
            }
        }
    }
    for (; i < m; i++, a += lda) {
        ag_axpby_f32_neon(y, a, n, alpha * x[i], beta);
    }
}
