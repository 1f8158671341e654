/* The micro-kernel of 8-bit integers with Helium: 16 elements of a window times 16 of each of four rows, the
 * last ones predicated. Sums are in even registers, as VMLADAVA needs them, addresses of rows in odd ones.
 *
 * A window of at most 64 elements remains in registers, and rows are read one after the other. */
#include <stdint.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

/* clang-format off */
/* All rows, four at a time, from a window in registers; `row` is the products of one row. */
#define LOOP(name, window, row)                                                                              \
    name ":" window                                                                                          \
    "1: ldm r1!, {r4, r6, r8, r10}\n" row("r4") row("r6") row("r8") row("r10")                               \
    "stm r0!, {r4, r6, r8, r10}\n"                                                                           \
    "le lr, 1b\n"                                                                                            \
    "b 8f\n"

#define LOAD(q, offset) "vldrb.8 " q ", [r2, #" offset "]\n"
#define LAST(q, offset) "add r2, #" offset "\nvpst\nvldrbt.8 " q ", [r2]\n" /* r5 elements, and zeros */
#define LOAD_1 LOAD("q0", "0")
#define LOAD_2 LOAD_1 LOAD("q1", "16")
#define LOAD_3 LOAD_2 LOAD("q2", "32")

#define DOT(sum, q, w) "vldrb.8 " w ", [r3], #16\nvmladava.s8 " sum ", " q ", " w "\n"
#define LAST_DOT(sum, q, w) "vpst\nvldrbt.8 " w ", [r3]\nadd r3, r5\nvmladava.s8 " sum ", " q ", " w "\n"
#define ROW_1(sum) LAST_DOT(sum, "q0", "q4")
#define ROW_2(sum) DOT(sum, "q0", "q4") LAST_DOT(sum, "q1", "q5")
#define ROW_3(sum) DOT(sum, "q0", "q4") DOT(sum, "q1", "q5") LAST_DOT(sum, "q2", "q4")
#define ROW_4(sum) DOT(sum, "q0", "q4") DOT(sum, "q1", "q5") DOT(sum, "q2", "q4") LAST_DOT(sum, "q3", "q5")
#define WHOLE_1(sum) DOT(sum, "q0", "q4")
#define WHOLE_2(sum) WHOLE_1(sum) DOT(sum, "q1", "q5")
#define WHOLE_4(sum) WHOLE_2(sum) DOT(sum, "q2", "q4") DOT(sum, "q3", "q5")

void ag_dots_s8_mve(int32_t *sums, const int32_t *bias, const int8_t *window, const int8_t *w, int32_t k,
                    int32_t rows);

/* `__extension__` permits text of more than 4,095 bytes. */
__extension__ __attribute__((naked)) void ag_dots_s8_mve(int32_t *sums, const int32_t *bias,
                                                         const int8_t *window, const int8_t *w, int32_t k,
                                                         int32_t rows) {
    __asm__(
        "ldr r12, [sp]\n"
        "push {r4-r11, lr}\n"
        "cmp r12, #64\n"
        "bhi 9f\n"
        "vpush {d8-d11}\n"
        "ldr lr, [sp, #72]\n"
        "lsr lr, lr, #2\n"
        "sub r5, r12, #1\n"
        "lsr r7, r5, #4\n" /* vectors before the last */
        "and r5, r5, #15\n"
        "add r5, #1\n"
        "vctp.8 r5\n"
        "dls lr, lr\n"
        "cmp r5, #16\n"
        "bne 2f\n"
        "cmp r7, #1\n"
        "blo 5f\n"
        "beq 6f\n"
        "cmp r7, #3\n"
        "beq 7f\n"
        "2: cmp r7, #1\n"
        "blo 3f\n"
        "beq 4f\n"
        "cmp r7, #2\n"
        "beq 2f\n"
        LOOP("1", LOAD_3 LAST("q3", "48"), ROW_4)
        LOOP("2", LOAD_2 LAST("q2", "32"), ROW_3)
        LOOP("3", LAST("q0", "0"), ROW_1)
        LOOP("4", LOAD_1 LAST("q1", "16"), ROW_2)
        LOOP("5", LOAD_1, WHOLE_1)
        LOOP("6", LOAD_2, WHOLE_2)
        LOOP("7", LOAD_3 LOAD("q3", "48"), WHOLE_4)
        "8: vpop {d8-d11}\n"
        "pop {r4-r11, pc}\n"
        "9: ldrd r8, r9, [sp, #36]\n"
        "add r9, r0, r9, lsl #2\n"
        "push {r2, r9}\n" /* window, and the end of sums */
        "mov r10, r0\n"
        "mov r12, r1\n"
        "mov r9, r3\n"
        "2: mov r3, r9\n"
        "ldr r1, [sp]\n"
        "add r5, r3, r8\n"
        "add r7, r5, r8\n"
        "add r11, r7, r8\n"
        "add r9, r11, r8\n"
        "ldm r12!, {r0, r2, r4, r6}\n"
        "dlstp.8 lr, r8\n"
        "1: vldrb.8 q0, [r1], #16\n"
        "vldrb.8 q1, [r3], #16\n"
        "vmladava.s8 r0, q0, q1\n"
        "vldrb.8 q2, [r5], #16\n"
        "vmladava.s8 r2, q0, q2\n"
        "vldrb.8 q1, [r7], #16\n"
        "vmladava.s8 r4, q0, q1\n"
        "vldrb.8 q2, [r11], #16\n"
        "vmladava.s8 r6, q0, q2\n"
        "letp lr, 1b\n"
        "stm r10!, {r0, r2, r4, r6}\n"
        "ldr r0, [sp, #4]\n"
        "cmp r10, r0\n"
        "bne 2b\n"
        "add sp, #8\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */
