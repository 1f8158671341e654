/* Eight elements at a time with VLDM and VSTM, then four and one: y = alpha x, y + alpha x, alpha x + beta y.
 */
#include "ag_kernels.h"

/* clang-format off */
#define SCALE(x) "vmul.f32 s" #x ", s" #x ", %[alpha]\n"
#define ADD(x, y) "vfma.f32 s" #y ", s" #x ", %[alpha]\n"
#define MIX(x, y) "vmul.f32 s" #x ", s" #x ", %[alpha]\n vfma.f32 s" #x ", s" #y ", %[beta]\n"
#define FOUR(op) op(4, 12) op(5, 13) op(6, 14) op(7, 15)
#define EIGHT(op) FOUR(op) op(8, 16) op(9, 17) op(10, 18) op(11, 19)
#define SCALED(x, y) SCALE(x)

/* eight elements, then four, then one: x is in s4..., y in s12... where it is read */
#define BLOCKS(op, read8, read4, read1, write8, write4, write1)                                              \
    __asm__ volatile(                                                                                        \
        "subs %[n], #8\n"                                                                                    \
        "blt 2f\n"                                                                                           \
        "1: vldmia %[x]!, {s4-s11}\n" read8                                                                  \
        "subs %[n], #8\n"                                                                                    \
        EIGHT(op) write8                                                                                     \
        "bge 1b\n"                                                                                           \
        "2: adds %[n], #4\n"                                                                                 \
        "blt 3f\n"                                                                                           \
        "vldmia %[x]!, {s4-s7}\n" read4 FOUR(op) write4                                                      \
        "subs %[n], #4\n"                                                                                    \
        "3: adds %[n], #4\n"                                                                                 \
        "beq 5f\n"                                                                                           \
        "4: vldmia %[x]!, {s4}\n" read1                                                                      \
        "subs %[n], #1\n"                                                                                    \
        op(4, 12) write1                                                                                     \
        "bne 4b\n"                                                                                           \
        "5:\n"                                                                                               \
        : [x] "+r"(x), [y] "+r"(y), [n] "+r"(n)                                                              \
        : [alpha] "t"(alpha), [beta] "t"(beta)                                                               \
        : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", \
          "s19", "cc", "memory")
#define READ8 "vldm %[y], {s12-s19}\n"
#define READ4 "vldm %[y], {s12-s15}\n"
#define READ1 "vldm %[y], {s12}\n"
#define WRITE1(y) "vstmia %[y]!, {s" #y "}\n"
#define WRITE(first, last) "vstmia %[y]!, {s" #first "-s" #last "}\n"

void ag_axpby_f32_armv7em(const float *x, float *y, int32_t n, float alpha, float beta) {
    if (beta == 0.0f) {
        BLOCKS(SCALED, "", "", "", WRITE(4, 11), WRITE(4, 7), WRITE1(4));
    } else if (beta == 1.0f) {
        BLOCKS(ADD, READ8, READ4, READ1, WRITE(12, 19), WRITE(12, 15), WRITE1(12));
    } else {
        BLOCKS(MIX, READ8, READ4, READ1, WRITE(4, 11), WRITE(4, 7), WRITE1(4));
    }
}
/* clang-format on */
