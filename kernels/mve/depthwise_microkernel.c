/* The depthwise micro-kernel (tiles/depthwise_microkernel.h) with Helium: two results of eight channels at a
 * time, in q0..q3, so that a weight is loaded once for both; then an odd last one. The inner loops are
 * low-overhead loops (DLS, LE). */
#include "tiles/depthwise_microkernel_offsets.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

/* clang-format off */
#define LOAD8(q0, q1, at) "vldrw.32 " q0 ", [" at "]\n vldrw.32 " q1 ", [" at ", #16]\n"
#define STORE8(q0, q1, at) "vstrw.32 " q0 ", [" at "]\n vstrw.32 " q1 ", [" at ", #16]\n"

__attribute__((naked)) void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    __asm__(
        "push {r4-r11, lr}\n"
        "vpush {d8-d15}\n"
        "ldrd r4, r5, [r0, #" A_STEP "]\n"
        "ldr r8, [r0, #" COUNT "]\n"
        "ldr r9, [r0, #" C "]\n"
        "ldr r12, [r0, #" A "]\n"
        "ldr r6, [r0, #" K "]\n"
        "subs r8, #2\n"
        "blt 4f\n"
        /* two results */
        "1: ldr r10, [r0, #" INIT "]\n"
        LOAD8("q0", "q1", "r10")
        LOAD8("q2", "q3", "r10")
        "ldr r10, [r0, #" A_NEXT "]\n"
        "ldr r3, [r0, #" B "]\n"
        "ldr r7, [r0, #" K_RUNS "]\n"
        "mov r1, r12\n"
        "add r2, r12, r10\n"
        "add r12, r2, r10\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "5: dls lr, r6\n"
        "2:"
        LOAD8("q4", "q5", "r3")
        "add r3, r5\n"
        LOAD8("q6", "q7", "r1")
        "add r1, r4\n"
        "vfma.f32 q0, q6, q4\n"
        "vfma.f32 q1, q7, q5\n"
        LOAD8("q6", "q7", "r2")
        "add r2, r4\n"
        "vfma.f32 q2, q6, q4\n"
        "vfma.f32 q3, q7, q5\n"
        "le lr, 2b\n"
        "add r1, r10\n"
        "add r2, r10\n"
        "add r3, r11\n"
        "subs r7, #1\n"
        "bne 5b\n"
        "ldr r10, [r0, #" C_NEXT "]\n"
        STORE8("q0", "q1", "r9")
        "add r9, r10\n"
        STORE8("q2", "q3", "r9")
        "add r9, r10\n"
        "subs r8, #2\n"
        "bge 1b\n"
        /* an odd last result */
        "4: adds r8, #1\n"
        "bne 9f\n"
        "ldr r3, [r0, #" INIT "]\n"
        LOAD8("q0", "q1", "r3")
        "ldr r3, [r0, #" B "]\n"
        "ldr r7, [r0, #" K_RUNS "]\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "6: dls lr, r6\n"
        "7:"
        LOAD8("q4", "q5", "r3")
        "add r3, r5\n"
        LOAD8("q6", "q7", "r12")
        "add r12, r4\n"
        "vfma.f32 q0, q6, q4\n"
        "vfma.f32 q1, q7, q5\n"
        "le lr, 7b\n"
        "add r12, r10\n"
        "add r3, r11\n"
        "subs r7, #1\n"
        "bne 6b\n"
        STORE8("q0", "q1", "r9")
        "9: vpop {d8-d15}\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */
