/* The micro-kernel of 8-bit integers with Helium: 16 elements of a window times 16 of each of four rows, the
 * last ones predicated. Sums are in even registers, as VMLADAVA needs them, addresses of rows in odd ones. */
#include <stdint.h>

void ag_dots_s8_mve(int32_t *sums, const int32_t *bias, const int8_t *window, const int8_t *w, int32_t k,
                    int32_t rows);

__attribute__((naked)) void ag_dots_s8_mve(int32_t *sums, const int32_t *bias, const int8_t *window,
                                           const int8_t *w, int32_t k, int32_t rows) {
    (void)sums, (void)bias, (void)window, (void)w, (void)k, (void)rows;
    __asm__("push {r4-r11, lr}\n"
            "ldrd r8, r9, [sp, #36]\n"
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
