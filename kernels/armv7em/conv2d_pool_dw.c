/* Weight gradient of a pooled convolution. Sums in registers: all of 3 x 3 and 5 x 5 elements of a channel,
 * otherwise up to 10 of each of two rows of the window. */
#include "tiles/conv2d_pool_gradient.h"

/* clang-format off */
#define TERM(sum, x) "vfma.f32 s" #sum ", s" #x ", s30\n"
#define ONE1 TERM(0, 20)
#define ONE2 ONE1 TERM(1, 21)
#define ONE3 ONE2 TERM(2, 22)
#define ONE4 ONE3 TERM(3, 23)
#define ONE5 ONE4 TERM(4, 24)
#define ONE6 ONE5 TERM(5, 25)
#define ONE7 ONE6 TERM(6, 26)
#define ONE8 ONE7 TERM(7, 27)
#define ONE9 ONE8 TERM(8, 28)
#define ONE10 ONE9 TERM(9, 29)
#define TWO1 TERM(10, 20)
#define TWO2 TWO1 TERM(11, 21)
#define TWO3 TWO2 TERM(12, 22)
#define TWO4 TWO3 TERM(13, 23)
#define TWO5 TWO4 TERM(14, 24)
#define TWO6 TWO5 TERM(15, 25)
#define TWO7 TWO6 TERM(16, 26)
#define TWO8 TWO7 TERM(17, 27)
#define TWO9 TWO8 TERM(18, 28)
#define TWO10 TWO9 TERM(19, 29)

#define ROW3(a, b, c) TERM(a, 25) TERM(b, 26) TERM(c, 27)
#define ROW5(a, b, c, d, e) TERM(a, 25) TERM(b, 26) TERM(c, 27) TERM(d, 28) TERM(e, 29)
#define DOWN(loaded) "add %[t], %[step]\n vldm %[t], {" loaded "}\n"
#define ROWS_OF_3 ROW3(0, 1, 2) DOWN("s25-s27") ROW3(3, 4, 5) DOWN("s25-s27") ROW3(6, 7, 8)
#define ROWS_OF_5                                                                                           \
    ROW5(0, 1, 2, 3, 4) DOWN("s25-s29") ROW5(5, 6, 7, 8, 9) DOWN("s25-s29") ROW5(10, 11, 12, 13, 14)        \
    DOWN("s25-s29") ROW5(15, 16, 17, 18, 19) DOWN("s25-s29") ROW5(20, 21, 22, 23, 24)

/* All windows: a row of `width` sums in s0 and up, and the next one in s10 and up; elements of x are in s20 and up. */
#define SUM_OF_ROWS(before, loaded, first, second, after)                                                   \
    __asm__ volatile(                                                                                       \
        "add %[t], %[sums], %[next]\n"                                                                      \
        before                                                                                              \
        "mov %[at], %[list]\n"                                                                              \
        "1: ldr %[t], [%[at]], #4\n"                                                                        \
        "vldmia %[at]!, {s30}\n"                                                                            \
        "add %[t], %[offset]\n"                                                                             \
        "cmp %[at], %[end]\n"                                                                               \
        "vldm %[t], {" loaded "}\n" first second                                                            \
        "bne 1b\n"                                                                                          \
        "add %[t], %[sums], %[next]\n"                                                                      \
        after                                                                                               \
        : [at] "=&r"(at), [t] "=&r"(t)                                                                      \
        : [sums] "r"(to), [offset] "r"(offset), [list] "r"(list), [end] "r"(list + count), [next] "r"(next), \
          [step] "r"(step)                                                                                  \
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",    \
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", \
          "s29", "s30", "cc", "memory")
#define SUM(width, held, below, loaded)                                                                     \
    case width:                                                                                             \
        if (n > 1) {                                                                                        \
            SUM_OF_ROWS("vldm %[sums], {" held "}\n vldm %[t], {" below "}\n", loaded, ONE##width,          \
                        DOWN(loaded) TWO##width,                                                            \
                        "vstm %[sums], {" held "}\n vstm %[t], {" below "}\n");                             \
        } else {                                                                                            \
            SUM_OF_ROWS("vldm %[sums], {" held "}\n", loaded, ONE##width, "", "vstm %[sums], {" held "}\n"); \
        }                                                                                                   \
        break;
/* clang-format on */

/* Adds dy times `count` windows to `rows` rows of sums, row_length each. The rows of a window are row_step
 * apart; count >= 1. */
static void ag_sum_windows_armv7em(float *sums, const ag_weighted_window *list, int32_t count,
                                   ptrdiff_t row_step, int32_t rows, int32_t row_length) {
    const int32_t pieces = (row_length + 9) / 10, length = (row_length + pieces - 1) / pieces;
    const int32_t next = row_length * 4, step = (int32_t)row_step * 4;
    if (rows == row_length && (rows == 3 || rows == 5)) {
        const ag_weighted_window *at;
        const float *to = sums;
        const int32_t offset = 0;
        int32_t t;
        if (rows == 3) {
            SUM_OF_ROWS("vldm %[sums], {s0-s8}\n", "s25-s27", ROWS_OF_3, "", "vstm %[sums], {s0-s8}\n");
        } else {
            SUM_OF_ROWS("vldm %[sums], {s0-s24}\n", "s25-s29", ROWS_OF_5, "", "vstm %[sums], {s0-s24}\n");
        }
        return;
    }
    for (int32_t k = 0; k < row_length; k += length) {
        const int32_t width = row_length - k < length ? row_length - k : length;
        float *to = sums + k;
        int32_t offset = k * 4;
        for (int32_t n = rows; n > 0; n -= 2, to += 2 * row_length, offset += 2 * step) {
            const ag_weighted_window *at;
            int32_t t;
            switch (width) {
                SUM(1, "s0", "s10", "s20")
                SUM(2, "s0-s1", "s10-s11", "s20-s21")
                SUM(3, "s0-s2", "s10-s12", "s20-s22")
                SUM(4, "s0-s3", "s10-s13", "s20-s23")
                SUM(5, "s0-s4", "s10-s14", "s20-s24")
                SUM(6, "s0-s5", "s10-s15", "s20-s25")
                SUM(7, "s0-s6", "s10-s16", "s20-s26")
                SUM(8, "s0-s7", "s10-s17", "s20-s27")
                SUM(9, "s0-s8", "s10-s18", "s20-s28")
                SUM(10, "s0-s9", "s10-s19", "s20-s29")
            }
        }
    }
}

#define AG_SUM_WINDOWS ag_sum_windows_armv7em
#include "tiles/conv2d_pool_dw.c"
