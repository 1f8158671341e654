/* Row-wise axpy for the gradients of pooled convolutions, up to twelve floats at a time with VLDM and VSTM.
 */
#ifndef AG_AXPY_ROWS_ARMV7EM_H
#define AG_AXPY_ROWS_ARMV7EM_H

#include <stdint.h>

#define FMA(dst, src) "vfma.f32 s" #dst ", s" #src ", %[factor]\n"

/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    int32_t remaining;
    /* clang-format off */
    __asm__ volatile(
        "1: subs %[remaining], %[row_length], #12\n"
        "blt 3f\n"
        "2: vldmia %[src]!, {s8-s19}\n"
        "vldm %[dst], {s20-s31}\n"
        "subs %[remaining], #12\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11) FMA(24, 12) FMA(25, 13)
        FMA(26, 14) FMA(27, 15) FMA(28, 16) FMA(29, 17) FMA(30, 18) FMA(31, 19)
        "vstmia %[dst]!, {s20-s31}\n"
        "bge 2b\n"
        "3: add %[remaining], #12\n"
        "lsls %[remaining], %[remaining], #29\n" /* the rest: 8 in the carry, 4 in the sign */
        "bcc 4f\n"
        "vldmia %[src]!, {s8-s15}\n"
        "vldm %[dst], {s20-s27}\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11) FMA(24, 12) FMA(25, 13) FMA(26, 14) FMA(27, 15)
        "vstmia %[dst]!, {s20-s27}\n"
        "4: bpl 5f\n"
        "vldmia %[src]!, {s8-s11}\n"
        "vldm %[dst], {s20-s23}\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11)
        "vstmia %[dst]!, {s20-s23}\n"
        "5: lsls %[remaining], %[remaining], #2\n" /* 2 and 1 */
        "bcc 6f\n"
        "vldmia %[src]!, {s8-s9}\n"
        "vldm %[dst], {s20-s21}\n"
        FMA(20, 8) FMA(21, 9)
        "vstmia %[dst]!, {s20-s21}\n"
        "6: bpl 7f\n"
        "vldmia %[src]!, {s8}\n"
        "vldr s20, [%[dst]]\n"
        FMA(20, 8)
        "vstmia %[dst]!, {s20}\n"
        "7: add %[dst], %[dst_skip]\n"
        "add %[src], %[src_skip]\n"
        "subs %[rows], #1\n"
        "bne 1b\n"
        : [dst] "+r"(dst), [src] "+r"(src), [rows] "+r"(rows), [remaining] "=&r"(remaining)
        : [row_length] "r"(row_length), [dst_skip] "r"(dst_skip), [src_skip] "r"(src_skip), [factor] "t"(factor)
        : "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21",
          "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory");
    /* clang-format on */
}

#undef FMA

#endif
