/* The depthwise micro-kernel (tiles/depthwise_microkernel.h): two results of eight channels at a time, in
 * s0..s15, so that a weight is loaded once for both, and a pixel too where the pixels of both are adjacent;
 * then the odd one, two products at a time.
 *
 *     result 0:  w0 w1 w2         each pixel of the row is multiplied by the weights of one column
 *     result 1:     w0 w1 w2 */
#include "tiles/depthwise_microkernel_offsets.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

/* clang-format off */
#define FMA(sum, a, b) "vfma.f32 s" #sum ", s" #a ", s" #b "\n"
#define FMA8(c0, c1, c2, c3, c4, c5, c6, c7, a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7) \
    FMA(c0, a0, b0) FMA(c1, a1, b1) FMA(c2, a2, b2) FMA(c3, a3, b3)                                         \
    FMA(c4, a4, b4) FMA(c5, a5, b5) FMA(c6, a6, b6) FMA(c7, a7, b7)
#define FIRST 0, 1, 2, 3, 4, 5, 6, 7
#define SECOND 8, 9, 10, 11, 12, 13, 14, 15
#define THIRD 16, 17, 18, 19, 20, 21, 22, 23
#define FOURTH 24, 25, 26, 27, 28, 29, 30, 31
#define SUM8(c, a, b) FMA8_(c, a, b)
#define FMA8_(...) FMA8(__VA_ARGS__)

#define TAP "vldm r3, {s24-s31}\n add r3, r5\n"
#define PIXEL(pointer, next) "vldm " pointer ", {s16-s23}\n add " pointer ", " next "\n"
/* A pixel times the last tap for the second result, and times the next one for the first. */
#define NEXT_TAP PIXEL("r1", "r4") SUM8(SECOND, THIRD, FOURTH) TAP SUM8(FIRST, THIRD, FOURTH)
/* A product of two results of other pixels. */
#define TAP_OF_2 TAP PIXEL("r1", "r4") SUM8(FIRST, THIRD, FOURTH) PIXEL("r2", "r4") SUM8(SECOND, THIRD, FOURTH)
/* The sums begin, and are stored. */
#define BEGIN                                                                                                \
    "ldr r6, [r0, #" INIT "]\n"                                                                              \
    "vldm r6, {s0-s7}\n vldm r6, {s8-s15}\n"                                                                \
    "mov r1, r12\n"                                                                                          \
    "ldr r3, [r0, #" B "]\n"                                                                                 \
    "ldrd r6, r7, [r0, #" K "]\n"
#define PUT(more)                                                                                            \
    "ldr r6, [r0, #" C_NEXT "]\n"                                                                            \
    "subs r8, #2\n"                                                                                          \
    "vstm r9, {s0-s7}\n add r9, r6\n vstm r9, {s8-s15}\n add r9, r6\n"                                     \
    "bge " more "\n"

/* `__extension__` permits text of more than 4,095 bytes. */
__extension__ __attribute__((naked)) void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    __asm__(
        "push {r4-r11, lr}\n"
        "vpush {d8-d15}\n"
        "ldrd r4, r5, [r0, #" A_STEP "]\n"
        "ldr r8, [r0, #" COUNT "]\n"
        "ldr r9, [r0, #" C "]\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "ldr r12, [r0, #" A "]\n"
        "subs r8, #2\n"
        "blt 4f\n"
        "ldr r6, [r0, #" K "]\n"
        "ldr lr, [r0, #" A_NEXT "]\n"
        "cmp lr, r4\n"
        "bne 7f\n"
        "cmp r6, #3\n"
        "beq 10f\n"
        /* pairs of results whose pixels are adjacent: each is loaded once. r2 is where the k - 1 taps after the first
         * one begin, lr how often the loop over two of them runs. */
        "lsrs lr, r6, #1\n"
        "adr r2, 3f + 1\n"
        "it cc\n"
        "adrcc r2, 5f + 1\n"
        "it eq\n"
        "adreq r2, 6f + 1\n"
        "1:" BEGIN
        "add r12, r12, r4, lsl #1\n"
        "2: mov r6, lr\n"
        PIXEL("r1", "r4") TAP SUM8(FIRST, THIRD, FOURTH)
        "bx r2\n"
        ".align 2\n"
        "3:" NEXT_TAP
        "5:" NEXT_TAP
        "subs r6, #1\n"
        "bne 3b\n"
        "6:" PIXEL("r1", "r10") SUM8(SECOND, THIRD, FOURTH)
        "add r3, r11\n"
        "subs r7, #1\n"
        "bne 2b\n"
        PUT("1b")
        "b 4f\n"
        /* the same of three taps */
        "10:" BEGIN
        "add r12, r12, r4, lsl #1\n"
        "2:" PIXEL("r1", "r4") TAP SUM8(FIRST, THIRD, FOURTH) NEXT_TAP NEXT_TAP
        "add r3, r11\n"
        PIXEL("r1", "r10") SUM8(SECOND, THIRD, FOURTH)
        "subs r7, #1\n"
        "bne 2b\n"
        PUT("10b")
        "b 4f\n"
        /* pairs of other pixels */
        "7:" BEGIN
        "add r2, r1, lr\n"
        "add r12, r2, lr\n"
        "2: subs r6, #3\n"
        "blt 8f\n" TAP_OF_2 TAP_OF_2 TAP_OF_2
        "bne 2b\n"
        "5: add r1, r10\n"
        "add r2, r10\n"
        "add r3, r11\n"
        "ldr r6, [r0, #" K "]\n"
        "subs r7, #1\n"
        "bne 2b\n"
        "b 3f\n"
        "8: adds r6, #3\n" /* one or two products of a run that remain */
        "9:" TAP_OF_2
        "subs r6, #1\n"
        "bne 9b\n"
        "b 5b\n"
        "3:"
        PUT("7b")
        /* an odd last result */
        "4: adds r8, #1\n"
        "bne 9f\n"
        "ldr lr, [r0, #" INIT "]\n"
        "vldm lr, {s0-s7}\n"
        "ldr r3, [r0, #" B "]\n"
        "ldr r7, [r0, #" K_RUNS "]\n"
        "5: ldr r6, [r0, #" K "]\n"
        "subs r6, #2\n"
        "blt 7f\n"
        "6: vldm r3, {s8-s15}\n"
        "add r3, r5\n"
        "vldm r12, {s16-s23}\n"
        "add r12, r4\n"
        "vldm r3, {s24-s31}\n"
        "add r3, r5\n"
        SUM8(FIRST, SECOND, THIRD)
        "vldm r12, {s16-s23}\n"
        "add r12, r4\n"
        "subs r6, #2\n"
        SUM8(FIRST, FOURTH, THIRD)
        "bge 6b\n"
        "7: adds r6, #1\n"
        "bne 8f\n"
        "vldm r3, {s8-s15}\n"
        "add r3, r5\n"
        "vldm r12, {s16-s23}\n"
        "add r12, r4\n"
        SUM8(FIRST, SECOND, THIRD)
        "8: subs r7, #1\n"
        "beq 8f\n"
        "add r12, r10\n"
        "add r3, r11\n"
        "b 5b\n"
        "8: vstm r9, {s0-s7}\n"
        "9: vpop {d8-d15}\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */
