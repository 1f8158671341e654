/* Sums of eight adjacent columns at a time, then of four, two and one: one VLDM per row. */
#include "ag_kernels.h"

#include <stddef.h>

/* clang-format off */
#define ADD1(s0, x0) "vadd.f32 s" #s0 ", s" #x0 "\n"
#define ADD2(s0, s1, x0, x1) ADD1(s0, x0) ADD1(s1, x1)
#define ADD4(s0, s1, s2, s3, x0, x1, x2, x3) ADD2(s0, s1, x0, x1) ADD2(s2, s3, x2, x3)
#define EVEN8 ADD4(0, 1, 2, 3, 8, 9, 10, 11) ADD4(4, 5, 6, 7, 12, 13, 14, 15)
#define ODD8 ADD4(0, 1, 2, 3, 16, 17, 18, 19) ADD4(4, 5, 6, 7, 20, 21, 22, 23)
#define EVEN4 ADD4(0, 1, 2, 3, 8, 9, 10, 11)
#define ODD4 ADD4(0, 1, 2, 3, 16, 17, 18, 19)
#define EVEN2 ADD2(0, 1, 8, 9)
#define ODD2 ADD2(0, 1, 16, 17)
#define EVEN1 ADD1(0, 8)
#define ODD1 ADD1(0, 16)

/* sums = the sums of as many columns as the list has registers; `step` bytes from row to row */
#define SUMS(even, odd, add_even, add_odd, list)                                                             \
    __asm__ volatile(                                                                                        \
        "vmov s0, %[zero]\n vmov s1, %[zero]\n vmov s2, %[zero]\n vmov s3, %[zero]\n"                        \
        "vmov s4, %[zero]\n vmov s5, %[zero]\n vmov s6, %[zero]\n vmov s7, %[zero]\n"                        \
        "subs %[m], #2\n"                                                                                    \
        "blt 2f\n"                                                                                           \
        "1: vldm %[a], {" even "}\n add %[a], %[step]\n"                                                     \
        "vldm %[a], {" odd "}\n add %[a], %[step]\n"                                                         \
        "subs %[m], #2\n"                                                                                    \
        add_even add_odd                                                                                     \
        "bge 1b\n"                                                                                           \
        "2: adds %[m], #1\n"                                                                                 \
        "bne 3f\n"                                                                                           \
        "vldm %[a], {" even "}\n"                                                                            \
        add_even                                                                                             \
        "3: vstm %[sums], {" list "}\n"                                                                      \
        : [a] "+r"(a), [m] "+r"(m)                                                                           \
        : [step] "r"(step), [sums] "r"(sums), [zero] "r"(0)                                                  \
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",     \
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory")
/* clang-format on */

static void sums_of_8(const float *a, int32_t step, int32_t m, float *sums) {
    SUMS("s8-s15", "s16-s23", EVEN8, ODD8, "s0-s7");
}

static void sums_of_4(const float *a, int32_t step, int32_t m, float *sums) {
    SUMS("s8-s11", "s16-s19", EVEN4, ODD4, "s0-s3");
}

static void sums_of_2(const float *a, int32_t step, int32_t m, float *sums) {
    SUMS("s8-s9", "s16-s17", EVEN2, ODD2, "s0-s1");
}

static void sums_of_1(const float *a, int32_t step, int32_t m, float *sums) {
    SUMS("s8", "s16", EVEN1, ODD1, "s0");
}

/* sums = the sums of `width` columns: those of blocks of rows, added up */
static void sums_of(int32_t width, const float *a, int32_t lda, int32_t m, float *sums) {
    const int32_t step = lda * (int32_t)sizeof(float);
    for (int32_t i = 0; i < m; i += AG_SUM_ROWS) {
        const int32_t rows = m - i < AG_SUM_ROWS ? m - i : AG_SUM_ROWS;
        const float *block = a + (ptrdiff_t)i * lda;
        float block_sums[8];
        float *const to = i == 0 ? sums : block_sums;
        if (width == 8) {
            sums_of_8(block, step, rows, to);
        } else if (width == 4) {
            sums_of_4(block, step, rows, to);
        } else if (width == 2) {
            sums_of_2(block, step, rows, to);
        } else {
            sums_of_1(block, step, rows, to);
        }
        for (int32_t q = 0; i > 0 && q < width; q++) {
            sums[q] += block_sums[q];
        }
    }
}

void ag_column_sums_f32_armv7em(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                                float beta) {
    float sums[8];
    while (n > 0) {
        const int32_t width = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;
        sums_of(width, a, lda, m, sums);
        for (int32_t q = 0; q < width; q++) {
            y[q] = beta == 0.0f ? alpha * sums[q] : alpha * sums[q] + beta * y[q];
        }
        a += width;
        y += width;
        n -= width;
    }
}
