/* Matrix times vector with VLDM: four rows (gemv), twelve or eight columns (gemv_t) at a time. */
#include "ag_kernels.h"
#include "epilogue.h"

#include <stdbool.h>
#include <stddef.h>

enum { ROWS = 4, COLUMNS = 8, MOST_COLUMNS = 12 };

#ifdef __OPTIMIZE_SIZE__
enum { IS_SMALL = 1 };
#else
enum { IS_SMALL = 0 };
#endif

/* clang-format off */
#define FMA(sum, a, b) "vfma.f32 %[" #sum "], s" #a ", s" #b "\n"
/* eight columns of two rows, in s12..s19 and s20..s27, times x in s4..s11 */
#define TWO_ROWS(u, v)                                                                                    \
    FMA(u, 4, 12) FMA(v, 4, 20) FMA(u, 5, 13) FMA(v, 5, 21) FMA(u, 6, 14) FMA(v, 6, 22) FMA(u, 7, 15)     \
    FMA(v, 7, 23) FMA(u, 8, 16) FMA(v, 8, 24) FMA(u, 9, 17) FMA(v, 9, 25) FMA(u, 10, 18) FMA(v, 10, 26)   \
    FMA(u, 11, 19) FMA(v, 11, 27)
/* clang-format on */

static inline float scale_add(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

/* A vector is short: not the blocks of epilogue.c. */
static inline void finish(const ag_epilogue *e, float *y, int32_t n) {
    if (e != NULL) {
        ag_finish_columns_armv7em(e, y, n, 1, n, 0);
    }
}

static float dot(const float *row, const float *x, int32_t n) {
    float sum = 0.0f;
    for (int32_t j = 0; j < n; j++) {
        sum += row[j] * x[j];
    }
    return sum;
}

void ag_gemv_f32_armv7em(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                         float alpha, float beta, const ag_epilogue *epilogue) {
    const int32_t whole = n & ~(COLUMNS - 1);
    int32_t i = 0;
    for (; i + ROWS <= m; i += ROWS) {
        const float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda, *px = x;
        float y0 = 0.0f, y1 = 0.0f, y2 = 0.0f, y3 = 0.0f;
        int32_t remaining = whole;
        if (remaining > 0) {
            /* clang-format off */
            __asm__ volatile(
                "1: vldmia %[x]!, {s4-s11}\n"
                "vldmia %[r0]!, {s12-s19}\n"
                "vldmia %[r1]!, {s20-s27}\n"
                "subs %[remaining], #8\n"
                TWO_ROWS(y0, y1)
                "vldmia %[r2]!, {s12-s19}\n"
                "vldmia %[r3]!, {s20-s27}\n"
                TWO_ROWS(y2, y3)
                "bne 1b\n"
                : [y0] "+t"(y0), [y1] "+t"(y1), [y2] "+t"(y2), [y3] "+t"(y3), [r0] "+r"(r0), [r1] "+r"(r1),
                  [r2] "+r"(r2), [r3] "+r"(r3), [x] "+r"(px), [remaining] "+r"(remaining)
                :
                : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17",
                  "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "cc", "memory");
            /* clang-format on */
        }
        for (remaining = n - whole; remaining > 0; remaining--) {
            const float xj = *px++;
            y0 += *r0++ * xj;
            y1 += *r1++ * xj;
            y2 += *r2++ * xj;
            y3 += *r3++ * xj;
        }
        y[i] = scale_add(y0, alpha, beta, &y[i]);
        y[i + 1] = scale_add(y1, alpha, beta, &y[i + 1]);
        y[i + 2] = scale_add(y2, alpha, beta, &y[i + 2]);
        y[i + 3] = scale_add(y3, alpha, beta, &y[i + 3]);
    }
    for (; i < m; i++) {
        y[i] = scale_add(dot(a + (ptrdiff_t)i * lda, x, n), alpha, beta, &y[i]);
    }
    finish(epilogue, y, m);
}

/* clang-format off */
#define EACH_OF_8(f) f(0, 12) f(1, 13) f(2, 14) f(3, 15) f(4, 16) f(5, 17) f(6, 18) f(7, 19)
#define EACH_OF_12(f) EACH_OF_8(f) f(8, 20) f(9, 21) f(10, 22) f(11, 23)
#define ZERO(sum, a) "vmov s" #sum ", %[zero]\n"
#define SCALE(sum, a) "vmul.f32 s" #sum ", s" #sum ", %[alpha]\n"
#define TIMES_24(sum, a) "vfma.f32 s" #sum ", s" #a ", s24\n"
#define TIMES_25(sum, a) "vfma.f32 s" #sum ", s" #a ", s25\n"
#define TIMES_26(sum, a) "vfma.f32 s" #sum ", s" #a ", s26\n"
#define TIMES_27(sum, a) "vfma.f32 s" #sum ", s" #a ", s27\n"
#define NEXT_ROW(list) "vldm %[a], {" list "}\n add %[a], %[step]\n"

/* y = alpha * the sums of adjacent columns of A, each row times an element of x; `step` bytes from row to row */
#define SUMS_OF_COLUMNS(each, row, sums)                                                                  \
    __asm__ volatile(                                                                                     \
        each(ZERO)                                                                                        \
        "subs %[m], #4\n"                                                                                 \
        "blt 2f\n"                                                                                        \
        "1: vldmia %[x]!, {s24-s27}\n"                                                                    \
        "subs %[m], #4\n"                                                                                 \
        NEXT_ROW(row) each(TIMES_24) NEXT_ROW(row) each(TIMES_25)                                         \
        NEXT_ROW(row) each(TIMES_26) NEXT_ROW(row) each(TIMES_27)                                         \
        "bge 1b\n"                                                                                        \
        "2: adds %[m], #4\n"                                                                              \
        "beq 4f\n"                                                                                        \
        "3: vldmia %[x]!, {s24}\n"                                                                        \
        "subs %[m], #1\n"                                                                                 \
        NEXT_ROW(row) each(TIMES_24)                                                                      \
        "bne 3b\n"                                                                                        \
        "4:" each(SCALE)                                                                                  \
        "vstm %[y], {" sums "}\n"                                                                         \
        : [a] "+r"(a), [x] "+r"(x), [m] "+r"(m)                                                           \
        : [step] "r"(step), [y] "r"(y), [zero] "r"(0), [alpha] "t"(alpha)                                 \
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",  \
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "cc", \
          "memory")
/* clang-format on */

static inline void columns(const float *a, int32_t step, const float *x, int32_t m, float alpha, float *y) {
    SUMS_OF_COLUMNS(EACH_OF_8, "s12-s19", "s0-s7");
}

static inline void columns_of_12(const float *a, int32_t step, const float *x, int32_t m, float alpha,
                                 float *y) {
    SUMS_OF_COLUMNS(EACH_OF_12, "s12-s23", "s0-s11");
}

void ag_gemv_t_f32_armv7em(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    const int32_t step = lda * (int32_t)sizeof(float);
    if (n < COLUMNS) {
        for (int32_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int32_t i = 0; i < m; i++) {
                sum += a[(ptrdiff_t)i * lda + j] * x[i];
            }
            y[j] = scale_add(sum, alpha, beta, &y[j]);
        }
        finish(epilogue, y, n);
        return;
    }
    for (int32_t j = 0, width; j < n; j += width) {
        /* twelve columns, unless fewer than eight would remain, or code is to be small; the last tile of
         * eight is shifted back inside and overlaps its neighbour */
        const int32_t overlap = j + COLUMNS > n ? j + COLUMNS - n : 0;
        const float *first = a + j - overlap;
        float sums[MOST_COLUMNS], *to = beta == 0.0f ? y + j - overlap : sums;
        const bool twelve = !IS_SMALL && (j + MOST_COLUMNS == n || j + MOST_COLUMNS + COLUMNS <= n);
        width = twelve ? MOST_COLUMNS : COLUMNS;
        (twelve ? columns_of_12 : columns)(first, step, x, m, alpha, to);
        for (int32_t q = overlap; to == sums && q < width; q++) {
            y[j - overlap + q] = sums[q] + beta * y[j - overlap + q];
        }
    }
    finish(epilogue, y, n);
}
