/* The outer product added to a matrix, four rows and eight columns at a time with VLDM and VSTM. */
#include "ag_kernels.h"

#include <stddef.h>

enum { ROWS = 4, COLUMNS = 8 };

#define FMA(a, y, x) "vfma.f32 s" #a ", s" #y ", %[" #x "]\n"
#define ROW(r, x)                                                                                            \
    "vldm %[" #r "], {s12-s19}\n" FMA(12, 4, x) FMA(13, 5, x) FMA(14, 6, x) FMA(15, 7, x) FMA(16, 8, x)      \
        FMA(17, 9, x) FMA(18, 10, x) FMA(19, 11, x) "vstmia %[" #r "]!, {s12-s19}\n"

void ag_ger_f32_armv7em(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n,
                        float alpha, float beta) {
    const int32_t whole = n & ~(COLUMNS - 1);
    int32_t i = 0;
    for (; beta == 1.0f && i + ROWS <= m; i += ROWS) {
        float *r0 = a + (ptrdiff_t)i * lda, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda;
        const float x0 = alpha * x[i], x1 = alpha * x[i + 1], x2 = alpha * x[i + 2], x3 = alpha * x[i + 3];
        const float *py = y;
        int32_t remaining = whole;
        if (remaining > 0) {
            /* clang-format off */
            __asm__ volatile(
                "1: vldmia %[y]!, {s4-s11}\n"
                "subs %[remaining], #8\n"
                ROW(r0, x0) ROW(r1, x1) ROW(r2, x2) ROW(r3, x3)
                "bne 1b\n"
                : [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [y] "+r"(py), [remaining] "+r"(remaining)
                : [x0] "t"(x0), [x1] "t"(x1), [x2] "t"(x2), [x3] "t"(x3)
                : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17",
                  "s18", "s19", "cc", "memory");
            /* clang-format on */
        }
        for (remaining = n - whole; remaining > 0; remaining--) {
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
