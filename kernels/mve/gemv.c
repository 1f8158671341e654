/* Matrix times vector with Helium: gemv computes four rows and four columns at a time, gemv_t sixteen
 * columns. */
#include "ag_kernels.h"

#include <arm_mve.h>
#include <stddef.h>

enum { ROWS = 4, LANES = 4, COLUMNS = 16 };

static inline float scale_add(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

static inline float dot(const float *row, const float *x, int32_t n, float sum) {
    for (int32_t j = 0; j < n; j++) {
        sum += row[j] * x[j];
    }
    return sum;
}

/* The sum of the lanes s<a>..s<d> of a vector, into s<a>. */
#define HORIZONTAL_SUM(a, b, c, d)                                                                           \
    "vadd.f32 s" #a ", s" #a ", s" #b "\n vadd.f32 s" #c ", s" #c ", s" #d "\n"                              \
    "vadd.f32 s" #a ", s" #a ", s" #c "\n"

void ag_gemv_f32_mve(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n, float alpha,
                     float beta) {
    const int32_t fours = n / LANES, tail = n % LANES;
    int32_t i = 0;
    for (; fours > 0 && i + ROWS <= m; i += ROWS, y += ROWS) {
        const float *r0 = a, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda, *px = x;
        register float y0 __asm__("s0");
        register float y1 __asm__("s4");
        register float y2 __asm__("s8");
        register float y3 __asm__("s12");
        /* clang-format off */
        __asm__ volatile("vmov.i32 q0, #0\n vmov.i32 q1, #0\n vmov.i32 q2, #0\n vmov.i32 q3, #0\n"
                         "dls lr, %[n]\n"
                         "1: vldrw.32 q4, [%[x]], #16\n"
                         "vldrw.32 q5, [%[r0]], #16\n"
                         "vldrw.32 q6, [%[r1]], #16\n"
                         "vfma.f32 q0, q4, q5\n"
                         "vldrw.32 q5, [%[r2]], #16\n"
                         "vfma.f32 q1, q4, q6\n"
                         "vldrw.32 q6, [%[r3]], #16\n"
                         "vfma.f32 q2, q4, q5\n"
                         "vfma.f32 q3, q4, q6\n"
                         "le lr, 1b\n" HORIZONTAL_SUM(0, 1, 2, 3) HORIZONTAL_SUM(4, 5, 6, 7) HORIZONTAL_SUM(8, 9, 10, 11)
                             HORIZONTAL_SUM(12, 13, 14, 15)
                         : "=t"(y0), "=t"(y1), "=t"(y2),
                           "=t"(y3), [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [x] "+r"(px)
                         : [n] "r"(fours)
                         : "s1", "s2", "s3", "s5", "s6", "s7", "s9", "s10", "s11", "s13", "s14", "s15", "s16",
                           "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "lr",
                           "memory");
        /* clang-format on */
        if (tail > 0) {
            y0 = dot(r0, px, tail, y0);
            y1 = dot(r1, px, tail, y1);
            y2 = dot(r2, px, tail, y2);
            y3 = dot(r3, px, tail, y3);
        }
        if (beta == 0.0f) {
            y[0] = alpha * y0;
            y[1] = alpha * y1;
            y[2] = alpha * y2;
            y[3] = alpha * y3;
        } else {
            y[0] = alpha * y0 + beta * y[0];
            y[1] = alpha * y1 + beta * y[1];
            y[2] = alpha * y2 + beta * y[2];
            y[3] = alpha * y3 + beta * y[3];
        }
        a = r3 - LANES * fours + lda;
    }
    for (; i < m; i++, y++, a += lda) {
        *y = scale_add(dot(a, x, n, 0.0f), alpha, beta, y);
    }
}

/* y[0..15] = alpha * sixteen columns of A times x + beta * y; `step` bytes from row to row */
static inline void columns(const float *a, int32_t step, const float *x, int32_t m, float alpha, float beta,
                           float *y) {
    float32x4_t s0, s1, s2, s3;
    __asm__ volatile(
        "vmov.i32 %q[s0], #0\n vmov.i32 %q[s1], #0\n vmov.i32 %q[s2], #0\n vmov.i32 %q[s3], #0\n"
        "dls lr, %[m]\n"
        "1: ldr r12, [%[x]], #4\n"
        "vldrw.32 q4, [%[a]]\n"
        "vldrw.32 q5, [%[a], #16]\n"
        "vfma.f32 %q[s0], q4, r12\n"
        "vldrw.32 q6, [%[a], #32]\n"
        "vfma.f32 %q[s1], q5, r12\n"
        "vldrw.32 q7, [%[a], #48]\n"
        "vfma.f32 %q[s2], q6, r12\n"
        "add %[a], %[step]\n"
        "vfma.f32 %q[s3], q7, r12\n"
        "le lr, 1b\n"
        : [s0] "=&w"(s0), [s1] "=&w"(s1), [s2] "=&w"(s2), [s3] "=&w"(s3), [a] "+r"(a), [x] "+r"(x)
        : [m] "r"(m), [step] "r"(step)
        : "r12", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28",
          "s29", "s30", "s31", "lr", "memory");
    s0 = vmulq_n_f32(s0, alpha);
    s1 = vmulq_n_f32(s1, alpha);
    s2 = vmulq_n_f32(s2, alpha);
    s3 = vmulq_n_f32(s3, alpha);
    if (beta != 0.0f) {
        s0 = vfmaq_n_f32(s0, vldrwq_f32(y), beta);
        s1 = vfmaq_n_f32(s1, vldrwq_f32(y + LANES), beta);
        s2 = vfmaq_n_f32(s2, vldrwq_f32(y + 2 * LANES), beta);
        s3 = vfmaq_n_f32(s3, vldrwq_f32(y + 3 * LANES), beta);
    }
    vstrwq_f32(y, s0);
    vstrwq_f32(y + LANES, s1);
    vstrwq_f32(y + 2 * LANES, s2);
    vstrwq_f32(y + 3 * LANES, s3);
}

void ag_gemv_t_f32_mve(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                       float alpha, float beta) {
    int32_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS) {
        columns(a + j, lda * (int32_t)sizeof(float), x, m, alpha, beta, y + j);
    }
    for (; j < n; j += LANES) {
        const mve_pred16_t p = vctp32q((uint32_t)(n - j));
        const float *pa = a + j;
        float32x4_t s = vdupq_n_f32(0.0f);
        for (int32_t i = 0; i < m; i++, pa += lda) {
            s = vfmaq_n_f32(s, vldrwq_z_f32(pa, p), x[i]);
        }
        s = vmulq_n_f32(s, alpha);
        if (beta != 0.0f) {
            s = vfmaq_n_f32(s, vldrwq_z_f32(y + j, p), beta);
        }
        vstrwq_p_f32(y + j, s, p);
    }
}
