/* Weight gradient of a pooled convolution. Windows of 3 x 3 and 5 x 5 elements hold their sums in registers
 * for a row of pooled pixels. */
#include "tiles/axpy_rows.h"

#include <stddef.h>

/* clang-format off */
#define FMA(sum, x, dy) "vfma.f32 s" #sum ", s" #x ", s" #dy "\n"
#define ROW3(a, b, c) "vldm %[t], {s26-s28}\n" FMA(a, 26, 25) FMA(b, 27, 25) FMA(c, 28, 25)
#define ROW5(a, b, c, d, e) \
    "vldm %[t], {s26-s30}\n" FMA(a, 26, 25) FMA(b, 27, 25) FMA(c, 28, 25) FMA(d, 29, 25) FMA(e, 30, 25)
#define DOWN "add %[t], %[row]\n"

/* The pixels with dy != 0: dy in s25, the start of the window in t. */
#define PIXELS(window)                                      \
    __asm__ volatile(                                       \
        "vldm %[sums], {s0-s24}\n"                          \
        "1: ldr %[u], [%[dy]]\n"                            \
        "ldrb %[t], [%[index]]\n"                           \
        "add %[dy], %[dy], %[channels], lsl #2\n"           \
        "add %[index], %[channels]\n"                       \
        "vmov s25, %[u]\n"                                  \
        "lsls %[u], %[u], #1\n"                             \
        "beq 2f\n"                                          \
        "ldr %[t], [%[element], %[t], lsl #2]\n"            \
        "add %[t], %[x], %[t], lsl #2\n"                    \
        window                                              \
        "2: subs %[count], #1\n"                            \
        "add %[x], %[step]\n"                               \
        "bne 1b\n"                                          \
        "vstm %[sums], {s0-s24}\n"                          \
        : [x] "+r"(x), [dy] "+r"(dy), [index] "+r"(index), [count] "+r"(count), [t] "=&r"(t), [u] "=&r"(u) \
        : [sums] "r"(sums), [channels] "r"(channels), [step] "r"(x_bytes), [element] "r"(element),         \
          [row] "r"(row_bytes)                                                                             \
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",   \
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27",       \
          "s28", "s29", "s30", "cc", "memory")
/* clang-format on */

/* As in tiles/conv2d_pool_dw.c; sums has room for 25 floats. */
static void ag_pool_dw_row_armv7em(float *sums, const float *x, const float *dy, const uint8_t *index,
                                   int32_t count, int32_t channels, ptrdiff_t step, const ptrdiff_t *element,
                                   ptrdiff_t row_step, int32_t rows, int32_t row_length) {
    const int32_t row_bytes = (int32_t)row_step * 4, x_bytes = (int32_t)step * 4;
    int32_t t, u;
    if (count > 0 && rows == 5 && row_length == 5) {
        PIXELS(ROW5(0, 1, 2, 3, 4) DOWN ROW5(5, 6, 7, 8, 9) DOWN ROW5(10, 11, 12, 13, 14)
                   DOWN ROW5(15, 16, 17, 18, 19) DOWN ROW5(20, 21, 22, 23, 24));
    } else if (count > 0 && rows == 3 && row_length == 3) {
        PIXELS(ROW3(0, 1, 2) DOWN ROW3(3, 4, 5) DOWN ROW3(6, 7, 8));
    } else {
        for (; count > 0; count--, x += step, dy += channels, index += channels) {
            if (*dy != 0.0f) {
                ag_axpy_rows(sums, 0, x + element[*index], row_bytes - row_length * 4, rows, row_length, *dy);
            }
        }
    }
}

#define AG_POOL_DW_ROW ag_pool_dw_row_armv7em
#include "tiles/conv2d_pool_dw.c"
