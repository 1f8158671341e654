/* The outer product added to a matrix, four rows and up to twelve columns at a time with VLDM and VSTM. */
#include "ag_kernels.h"

#include <stddef.h>

enum { ROWS = 4 };

#define FMA(a, y, x) "vfma.f32 s" #a ", s" #y ", %[" #x "]\n"
/* columns of a row: a += x * y */
#define ROW_OF_4(r, x)                                                                                       \
    "vldm %[" #r "], {s16-s19}\n" FMA(16, 4, x) FMA(17, 5, x) FMA(18, 6, x) FMA(19, 7, x) "vstmia %[" #r     \
                                                                                          "]!, {s16-s19}\n"
#define ROW_OF_8(r, x)                                                                                       \
    "vldm %[" #r "], {s16-s23}\n" FMA(16, 4, x) FMA(17, 5, x) FMA(18, 6, x) FMA(19, 7, x) FMA(20, 8, x)      \
        FMA(21, 9, x) FMA(22, 10, x) FMA(23, 11, x) "vstmia %[" #r "]!, {s16-s23}\n"
#define ROW_OF_12(r, x)                                                                                      \
    "vldm %[" #r "], {s16-s27}\n" FMA(16, 4, x) FMA(17, 5, x) FMA(18, 6, x) FMA(19, 7, x) FMA(20, 8, x)      \
        FMA(21, 9, x) FMA(22, 10, x) FMA(23, 11, x) FMA(24, 12, x) FMA(25, 13, x) FMA(26, 14, x)             \
            FMA(27, 15, x) "vstmia %[" #r "]!, {s16-s27}\n"
/* four rows, as long as `columns` remain */
#define FOUR_ROWS(row, columns, y_registers)                                                                 \
    __asm__ volatile("1: vldmia %[y]!, {" y_registers "}\n"                                                  \
                     "subs %[remaining], #" #columns "\n" row(r0, x0) row(r1, x1) row(r2, x2)                \
                         row(r3, x3) "cmp %[remaining], #" #columns "\n"                                     \
                                     "bge 1b\n"                                                              \
                     : [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [y] "+r"(py),             \
                       [remaining] "+r"(remaining)                                                           \
                     : [x0] "t"(x0), [x1] "t"(x1), [x2] "t"(x2), [x3] "t"(x3)                                \
                     : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16",  \
                       "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "cc",    \
                       "memory")

void ag_ger_f32_armv7em(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    int32_t i = 0;
    for (; beta == 1.0f && i + ROWS <= m; i += ROWS) {
        float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda;
        const float x0 = alpha * x[i], x1 = alpha * x[i + 1], x2 = alpha * x[i + 2], x3 = alpha * x[i + 3];
        const float *py = y;
        int32_t remaining = n;
        if (remaining >= 12) {
            FOUR_ROWS(ROW_OF_12, 12, "s4-s15");
        }
        if (remaining >= 8) {
            FOUR_ROWS(ROW_OF_8, 8, "s4-s11");
        }
        if (remaining >= 4) {
            FOUR_ROWS(ROW_OF_4, 4, "s4-s7");
        }
        for (; remaining > 0; remaining--) {
            const float yj = *py++;
            *r0++ += x0 * yj;
            *r1++ += x1 * yj;
            *r2++ += x2 * yj;
            *r3++ += x3 * yj;
        }
    }
    for (; i < m; i++) {
        ag_axpby_f32_armv7em(y, a + (ptrdiff_t)i * lda, n, alpha * x[i], beta);
    }
}
