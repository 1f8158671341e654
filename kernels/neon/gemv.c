/* Matrix times vector: four or eight rows (gemv) or 32 columns (gemv_t) at a time. */
#include "ag_kernels.h"
#include "vec.h"

#if defined __aarch64__
#include "gemv_ger_a64.h"
#else
#include "gemv_ger_a32.h"
#endif

static float dot(const float *row, const float *x, int32_t n) {
    float32x4_t sum = vdupq_n_f32(0.0f);
    float rest = 0.0f;
    int32_t j = 0;
    for (; j + 4 <= n; j += 4) {
        sum = vfmaq_f32(sum, vld1q_f32(row + j), vld1q_f32(x + j));
    }
    for (; j < n; j++) {
        rest += row[j] * x[j];
    }
    return vgetq_lane_f32(horizontal_sums(sum, sum, sum, sum), 0) + rest;
}

void ag_gemv_f32_neon(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                      float alpha, float beta) {
    const int32_t whole = n & ~3;
    const float *rows[ROWS];
    float sums[ROWS];
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        for (int32_t r = 0; r < ROWS; r++, a += lda) {
            rows[r] = a;
        }
        dot_rows(rows, x, whole, sums);
        for (int32_t j = whole; j < n; j++) {
            for (int32_t r = 0; r < ROWS; r++) {
                sums[r] += rows[r][j] * x[j];
            }
        }
        for (int32_t r = 0; r < ROWS; r += 4) {
            scale_add4(y + i + r, vld1q_f32(sums + r), alpha, beta);
        }
    }
    for (; i < m; i++, a += lda) {
        y[i] = scale_add(dot(a, x, n), alpha, beta, &y[i]);
    }
}

void ag_gemv_t_f32_neon(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    float sums[COLUMNS];
    int32_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        dot_columns(a + j, lda, x, m, sums);
        for (int32_t q = 0; q < COLUMNS; q += 4) {
            scale_add4(y + j + q, vld1q_f32(sums + q), alpha, beta);
        }
    }
    for (; j + 4 <= n; j += 4) {
        const float *p = a + j;
        float32x4_t sum = vdupq_n_f32(0.0f);
        for (int32_t i = 0; i < m; i++, p += lda) {
            sum = vmlaq_n_f32(sum, vld1q_f32(p), x[i]);
        }
        scale_add4(y + j, sum, alpha, beta);
    }
    for (; j < n; j++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < m; i++) {
            sum += a[(ptrdiff_t)i * lda + j] * x[i];
        }
        y[j] = scale_add(sum, alpha, beta, &y[j]);
    }
}
