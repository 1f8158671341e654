/* What gradients of pooled convolutions add to, eight floats at a time with VLDM and VSTM. */
#ifndef AG_ROWS_ARMV7EM_H
#define AG_ROWS_ARMV7EM_H

#include <stdint.h>

#define FMA(to, from) "vfma.f32 s" #to ", s" #from ", %[factor]\n"

/* to += factor * from for `rows` rows of `run` floats, >= 1 of both; the skips, in bytes, lie between the end
 * of a row and the next one. */
static inline void ag_add_rows(float *to, int32_t to_skip, const float *from, int32_t from_skip, int32_t rows,
                               int32_t run, float factor) {
    int32_t left;
    /* clang-format off */
    __asm__ volatile(
        "1: subs %[left], %[run], #8\n"
        "blt 3f\n"
        "2: vldmia %[from]!, {s16-s23}\n"
        "vldm %[to], {s24-s31}\n"
        "subs %[left], #8\n"
        FMA(24, 16) FMA(25, 17) FMA(26, 18) FMA(27, 19) FMA(28, 20) FMA(29, 21) FMA(30, 22) FMA(31, 23)
        "vstmia %[to]!, {s24-s31}\n"
        "bge 2b\n"
        "3: lsls %[left], %[left], #30\n" /* what is left: 4 in the carry, 2 in the sign */
        "bcc 4f\n"
        "vldmia %[from]!, {s16-s19}\n"
        "vldm %[to], {s24-s27}\n"
        FMA(24, 16) FMA(25, 17) FMA(26, 18) FMA(27, 19)
        "vstmia %[to]!, {s24-s27}\n"
        "4: bpl 5f\n"
        "vldmia %[from]!, {s16-s17}\n"
        "vldm %[to], {s24-s25}\n"
        FMA(24, 16) FMA(25, 17)
        "vstmia %[to]!, {s24-s25}\n"
        "5: lsls %[left], %[left], #1\n"
        "bpl 6f\n"
        "vldmia %[from]!, {s16}\n"
        "vldr s24, [%[to]]\n"
        FMA(24, 16)
        "vstmia %[to]!, {s24}\n"
        "6: add %[to], %[to_skip]\n"
        "add %[from], %[from_skip]\n"
        "subs %[rows], #1\n"
        "bne 1b\n"
        : [to] "+r"(to), [from] "+r"(from), [rows] "+r"(rows), [left] "=&r"(left)
        : [run] "r"(run), [to_skip] "r"(to_skip), [from_skip] "r"(from_skip), [factor] "t"(factor)
        : "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29",
          "s30", "s31", "cc", "memory");
    /* clang-format on */
}

/* Zeros. */
static inline void ag_clear(float *to, int32_t count) {
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
