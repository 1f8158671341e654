/* What gradients of pooled convolutions add to, up to twelve floats at a time with VLDM and VSTM. */
#ifndef AG_AXPY_ROWS_ARMV7EM_H
#define AG_AXPY_ROWS_ARMV7EM_H

#include <stdint.h>

#define FMA(to, from) "vfma.f32 s" #to ", s" #from ", %[factor]\n"

/* to += factor * from for `rows` rows of `run` floats, >= 1 of both; the skips, in bytes, lie between the end
 * of a row and the next one. */
static inline void ag_axpy_rows(float *to, int32_t to_skip, const float *from, int32_t from_skip,
                                int32_t rows, int32_t run, float factor) {
    int32_t left;
    /* clang-format off */
    __asm__ volatile(
        "1: subs %[left], %[run], #12\n"
        "blt 3f\n"
        "2: vldmia %[from]!, {s8-s19}\n"
        "vldm %[to], {s20-s31}\n"
        "subs %[left], #12\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11) FMA(24, 12) FMA(25, 13)
        FMA(26, 14) FMA(27, 15) FMA(28, 16) FMA(29, 17) FMA(30, 18) FMA(31, 19)
        "vstmia %[to]!, {s20-s31}\n"
        "bge 2b\n"
        "3: add %[left], #12\n"
        "lsls %[left], %[left], #29\n" /* what is left: 8 in the carry, 4 in the sign */
        "bcc 4f\n"
        "vldmia %[from]!, {s8-s15}\n"
        "vldm %[to], {s20-s27}\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11) FMA(24, 12) FMA(25, 13) FMA(26, 14) FMA(27, 15)
        "vstmia %[to]!, {s20-s27}\n"
        "4: bpl 5f\n"
        "vldmia %[from]!, {s8-s11}\n"
        "vldm %[to], {s20-s23}\n"
        FMA(20, 8) FMA(21, 9) FMA(22, 10) FMA(23, 11)
        "vstmia %[to]!, {s20-s23}\n"
        "5: lsls %[left], %[left], #2\n" /* 2 and 1 */
        "bcc 6f\n"
        "vldmia %[from]!, {s8-s9}\n"
        "vldm %[to], {s20-s21}\n"
        FMA(20, 8) FMA(21, 9)
        "vstmia %[to]!, {s20-s21}\n"
        "6: bpl 7f\n"
        "vldmia %[from]!, {s8}\n"
        "vldr s20, [%[to]]\n"
        FMA(20, 8)
        "vstmia %[to]!, {s20}\n"
        "7: add %[to], %[to_skip]\n"
        "add %[from], %[from_skip]\n"
        "subs %[rows], #1\n"
        "bne 1b\n"
        : [to] "+r"(to), [from] "+r"(from), [rows] "+r"(rows), [left] "=&r"(left)
        : [run] "r"(run), [to_skip] "r"(to_skip), [from_skip] "r"(from_skip), [factor] "t"(factor)
        : "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21",
          "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory");
    /* clang-format on */
}

/* Zeros. */
static inline void ag_zero_floats(float *to, int32_t count) {
    int32_t left = count;
    /* clang-format off */
    __asm__ volatile(
        "vmov s16, %[zero]\n vmov s17, %[zero]\n vmov s18, %[zero]\n vmov s19, %[zero]\n"
        "vmov s20, %[zero]\n vmov s21, %[zero]\n vmov s22, %[zero]\n vmov s23, %[zero]\n"
        "subs %[left], #8\n"
        "blt 2f\n"
        "1: vstmia %[to]!, {s16-s23}\n"
        "subs %[left], #8\n"
        "bge 1b\n"
        "2: adds %[left], #8\n"
        "beq 4f\n"
        "3: vstmia %[to]!, {s16}\n"
        "subs %[left], #1\n"
        "bne 3b\n"
        "4:\n"
        : [to] "+r"(to), [left] "+r"(left)
        : [zero] "r"(0)
        : "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "cc", "memory");
    /* clang-format on */
}

#undef FMA

#endif
