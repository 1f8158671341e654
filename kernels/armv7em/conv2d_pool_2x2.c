/* Convolution of one input channel with windows of 2 to 5 columns, pooled 2 x 2: the four pixels of a pooling
 * window share their rows of x, which are loaded once for two output channels.
 *
 *     x: rows of kw + 1 elements       sums of two channels
 *     row i      | . . . . . . |       s0 s1   s4 s5
 *     row i + 1  | . . . . . . |       s2 s3   s6 s7
 *
 * Row i of a filter times row i of x is added to the sums of the first line, times row i + 1 of x to the sums
 * of the second line. */
#include "ag_kernels.h"

#include <stddef.h>

/* clang-format off */
#define FMA(sum, x, w) "vfma.f32 s" #sum ", s" #x ", s" #w "\n"
/* one tap w of both channels: pixels in rows x, x' and z, z' */
#define TAP(x, x1, z, z1, a, b)                             \
    FMA(0, x, a) FMA(1, x1, a) FMA(2, z, a) FMA(3, z1, a)   \
    FMA(4, x, b) FMA(5, x1, b) FMA(6, z, b) FMA(7, z1, b)
/* the first taps of a row, where row i is in s8 and up, row i + 1 in s14 and up, or with the two exchanged */
#define EVEN2 TAP(8, 9, 14, 15, 20, 25) TAP(9, 10, 15, 16, 21, 26)
#define EVEN3 EVEN2 TAP(10, 11, 16, 17, 22, 27)
#define EVEN4 EVEN3 TAP(11, 12, 17, 18, 23, 28)
#define EVEN5 EVEN4 TAP(12, 13, 18, 19, 24, 29)
#define ODD2 TAP(14, 15, 8, 9, 20, 25) TAP(15, 16, 9, 10, 21, 26)
#define ODD3 ODD2 TAP(16, 17, 10, 11, 22, 27)
#define ODD4 ODD3 TAP(17, 18, 11, 12, 23, 28)
#define ODD5 ODD4 TAP(18, 19, 12, 13, 24, 29)

#define NEXT_X(x) "vldm %[x], {" x "}\n add %[x], %[row]\n"
#define NEXT_W(a, b) "vldmia %[wa]!, {" a "}\n vldmia %[wb]!, {" b "}\n"
/* `rows` rows of the window, two at a time */
#define WINDOW(x, z, a, b, even, odd)                       \
    NEXT_X(x)                                               \
    "subs %[rows], #1\n ble 2f\n"                           \
    "1:\n" NEXT_X(z) NEXT_W(a, b) even                      \
    NEXT_X(x) NEXT_W(a, b) odd                              \
    "subs %[rows], #2\n bgt 1b\n"                           \
    "2: blt 3f\n" NEXT_X(z) NEXT_W(a, b) even               \
    "3:\n"

/* the larger of s<best> and s<sum>, which is element e; NaN is larger than numbers, and the last NaN wins */
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
#define MAX_OF_4(s0, s1, s2, s3)                                                 \
    "mov %[which], #0\n"                                                        \
    MAX(s0, s1, 1) MAX(s0, s2, 2) MAX(s0, s3, 3)                                \
    "vstmia %[y]!, {s" #s0 "}\n"                                                \
    "strb %[which], [%[index]], #1\n"

/* Two channels of one pooling window: y and index from the next two biases, w and x. */
#define CHANNELS(columns, even, odd, a, b)                                                                  \
    case columns:                                                                                           \
        __asm__ volatile(                                                                                   \
            "vldmia %[next]!, {s0, s1}\n"                                                                   \
            "vmov.f32 s4, s1\n vmov.f32 s5, s1\n vmov.f32 s6, s1\n vmov.f32 s7, s1\n"                       \
            "vmov.f32 s1, s0\n vmov.f32 s2, s0\n vmov.f32 s3, s0\n"                                         \
            WINDOW(even, odd, a, b, EVEN##columns, ODD##columns)                                            \
            MAX_OF_4(0, 1, 2, 3) MAX_OF_4(4, 5, 6, 7)                                                       \
            : [x] "+r"(px), [wa] "+r"(wa), [wb] "+r"(wb), [rows] "+r"(rows), [which] "=&r"(which),          \
              [next] "+r"(next), [y] "+r"(y), [index] "+r"(index)                                           \
            : [row] "r"(row)                                                                                \
            : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", \
              "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27",     \
              "s28", "s29", "cc", "memory");                                                                \
        break;
/* clang-format on */

/* All pooling windows; an odd last channel is computed together with the one before it. `columns` is a
 * constant. `__extension__` permits assembly of more than 4,095 bytes. */
__extension__ static inline __attribute__((always_inline)) void
ag_pool_2x2(const float *x, const float *w, const float *bias, float *y, uint8_t *index, int32_t n,
            const ag_conv2d_pool_shape *s, int32_t columns) {
    const int32_t row = s->x_h * (int32_t)sizeof(float), channels = s->o, filter = s->kh * columns;
    for (int32_t b = 0; b < n; b++) {
        for (int32_t p = 0; p < s->ph; p++) {
            const float *at = x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)p * s->pool_stride_h * s->x_h;
            for (int32_t q = 0; q < s->pw; q++, at += s->pool_stride_w) {
                const float *wb = w, *next = bias; /* wb: the end of the weights before */
                for (int32_t remaining = channels; remaining > 0; remaining -= 2) {
                    const float *px = at, *wa;
                    int32_t rows = s->kh, which;
                    if (remaining == 1) {
                        wb -= filter, next--, y--, index--;
                    }
                    wa = wb;
                    wb += filter;
                    switch (columns) {
                        CHANNELS(2, "s8-s10", "s14-s16", "s20-s21", "s25-s26")
                        CHANNELS(3, "s8-s11", "s14-s17", "s20-s22", "s25-s27")
                        CHANNELS(4, "s8-s12", "s14-s18", "s20-s23", "s25-s28")
                        CHANNELS(5, "s8-s13", "s14-s19", "s20-s24", "s25-s29")
                    }
                }
            }
        }
    }
}

/* A function for each number of columns, so that programs link only the functions that they call. */
#define KERNEL(name, columns)                                                                                \
    ag_conv2d_pool_f32_fn name;                                                                              \
    void name(const float *x, const float *w, const float *bias, float *y, uint8_t *index, int32_t n,        \
              const ag_conv2d_pool_shape *shape) {                                                           \
        ag_pool_2x2(x, w, bias, y, index, n, shape, columns);                                                \
    }
KERNEL(ag_conv2d_pool_2_columns_f32_armv7em, 2)
KERNEL(ag_conv2d_pool_3_columns_f32_armv7em, 3)
KERNEL(ag_conv2d_pool_4_columns_f32_armv7em, 4)
KERNEL(ag_conv2d_pool_5_columns_f32_armv7em, 5)
