/* Convolution of one input channel with 3 x 3 or 5 x 5 windows, pooled 2 x 2: the four pixels of a pooling
 * window share their rows of x, which are loaded once for two output channels. */
#include "ag_kernels.h"

#include <stddef.h>

/* clang-format off */
#define FMA(sum, x, w) "vfma.f32 s" #sum ", s" #x ", s" #w "\n"
/* one tap w of both channels: pixels in rows x, x' and z, z' */
#define TAP(x, x1, z, z1, a, b)                             \
    FMA(0, x, a) FMA(1, x1, a) FMA(2, z, a) FMA(3, z1, a)   \
    FMA(4, x, b) FMA(5, x1, b) FMA(6, z, b) FMA(7, z1, b)
#define NEXT_X(first, last) "vldm %[x], {s" #first "-s" #last "}\n add %[x], %[row]\n"
#define NEXT_W(a0, a1, b0, b1) "vldmia %[wa]!, {s" #a0 "-s" #a1 "}\n vldmia %[wb]!, {s" #b0 "-s" #b1 "}\n"

#define ROW5(x0, x1, x2, x3, x4, x5, z0, z1, z2, z3, z4, z5)        \
    NEXT_X(z0, z5) NEXT_W(20, 24, 25, 29)                           \
    TAP(x0, x1, z0, z1, 20, 25) TAP(x1, x2, z1, z2, 21, 26)         \
    TAP(x2, x3, z2, z3, 22, 27) TAP(x3, x4, z3, z4, 23, 28)         \
    TAP(x4, x5, z4, z5, 24, 29)
#define EVEN5 ROW5(8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
#define ODD5 ROW5(14, 15, 16, 17, 18, 19, 8, 9, 10, 11, 12, 13)
#define WINDOW5 NEXT_X(8, 13) EVEN5 ODD5 EVEN5 ODD5 EVEN5

#define ROW3(x0, x1, x2, x3, z0, z1, z2, z3)                        \
    NEXT_X(z0, z3) NEXT_W(20, 22, 25, 27)                           \
    TAP(x0, x1, z0, z1, 20, 25) TAP(x1, x2, z1, z2, 21, 26)         \
    TAP(x2, x3, z2, z3, 22, 27)
#define EVEN3 ROW3(8, 9, 10, 11, 14, 15, 16, 17)
#define ODD3 ROW3(14, 15, 16, 17, 8, 9, 10, 11)
#define WINDOW3 NEXT_X(8, 11) EVEN3 ODD3 EVEN3

/* the larger of s<best> and s<sum>, which is element e; NaN is larger than all numbers, and the last NaN wins
 */
#define MAX(best, sum, e)                        \
    "vcmp.f32 s" #best ", s" #sum "\n"              \
    "vmrs APSR_nzcv, fpscr\n"                       \
    "bvc 1f\n"                                      \
    "vcmp.f32 s" #sum ", s" #sum "\n"               \
    "vmrs APSR_nzcv, fpscr\n"                       \
    "bvc 2f\n"                                      \
    "vmov s" #best ", s" #sum "\n"                  \
    "mov %[which], #" #e "\n"                       \
    "b 2f\n"                                        \
    "1: itt mi\n"                                   \
    "vmovmi.f32 s" #best ", s" #sum "\n"            \
    "movmi %[which], #" #e "\n"                     \
    "2:\n"
#define MAX_OF_4(s0, s1, s2, s3, at)                                             \
    "mov %[which], #0\n"                                                        \
    MAX(s0, s1, 1) MAX(s0, s2, 2) MAX(s0, s3, 3)                       \
    "vstr s" #s0 ", [%[y], #" #at " * 4]\n"                                     \
    "strb %[which], [%[index], #" #at "]\n"

/* Two channels of one pooling window: y and index from bias, w and x. */
#define CHANNELS(window)                                                                                    \
    __asm__ volatile(                                                                                       \
        "vldm %[bias], {s0, s1}\n"                                                                          \
        "vmov.f32 s4, s1\n vmov.f32 s5, s1\n vmov.f32 s6, s1\n vmov.f32 s7, s1\n"                           \
        "vmov.f32 s1, s0\n vmov.f32 s2, s0\n vmov.f32 s3, s0\n"                                             \
        window MAX_OF_4(0, 1, 2, 3, 0) MAX_OF_4(4, 5, 6, 7, 1)                                                \
        : [x] "+r"(px), [wa] "+r"(wa), [wb] "+r"(wb), [which] "=&r"(which)                                  \
        : [row] "r"(row), [bias] "r"(bias + o), [y] "r"(y + o), [index] "r"(index + o)                      \
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",    \
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", \
          "s29", "cc", "memory")
/* clang-format on */

/* All pooling windows; an odd last channel is computed together with the one before it. */
#define KERNEL(name, size, window)                                                                           \
    void name(const float *x, const float *w, const float *bias, float *y, uint8_t *index, int32_t n,        \
              const ag_conv2d_pool_shape *shape) {                                                           \
        const int32_t row = shape->x_h * (int32_t)sizeof(float), channels = shape->o;                        \
        for (int32_t b = 0; b < n; b++) {                                                                    \
            for (int32_t p = 0; p < shape->ph; p++) {                                                        \
                const float *at =                                                                            \
                    x + (ptrdiff_t)b * shape->x_n + (ptrdiff_t)p * shape->pool_stride_h * shape->x_h;        \
                for (int32_t q = 0; q < shape->pw; q++, at += shape->pool_stride_w) {                        \
                    for (int32_t next = 0; next < channels; next += 2) {                                     \
                        const int32_t o = next + 2 > channels ? channels - 2 : next;                         \
                        const float *px = at, *wa = w + o * (size), *wb = wa + (size);                       \
                        int32_t which;                                                                       \
                        CHANNELS(window);                                                                    \
                    }                                                                                        \
                    y += channels;                                                                           \
                    index += channels;                                                                       \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

KERNEL(ag_conv2d_pool_3x3_f32_armv7em, 9, WINDOW3)
KERNEL(ag_conv2d_pool_5x5_f32_armv7em, 25, WINDOW5)
