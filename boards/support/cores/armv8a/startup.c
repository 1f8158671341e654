/* Start-up from reset at EL1: paints the stack for the high-water mark, enables floating point and the MMU.
 * Arm DDI 0487, D1.10 (exceptions), D13.2 (registers). */
#include "ag_core.h"
#include "ag_startup.h"

void ag_start(void);

/* Sixteen vectors of 128 bytes: from the current level with SP_EL0, with SP_EL1, and from the lower level in
 * AArch64 and AArch32; in each synchronous, IRQ, FIQ, SError. */
#define VECTOR(to) ".balign 128\n b " #to "\n"
/* clang-format off */
AG_FUNCTION(ag_vectors, ".vectors",
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_synchronous)
    VECTOR(ag_interrupt)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault)
    VECTOR(ag_fault))
/* clang-format on */

/* libm's errno is 16 bytes after TPIDR_EL0 (Arm IHI 0057: thread-local variables). */
__attribute__((used)) uint64_t ag_thread[8];

/* clang-format off */
AG_FUNCTION(Reset_Handler, ".text.Reset_Handler",
    "msr   daifset, #15 \n"
    "ldr   x0, =__stack_bottom \n"
    "ldr   x1, =__stack_top \n"
    "msr   spsel, #1 \n"
    "mov   sp, x1 \n"
    "ldr   w2, =" AG_TEXT(AG_STACK_PAINT) " \n"
    "1: \n"
    "str   w2, [x0], #4 \n"
    "cmp   x0, x1 \n"
    "b.lo  1b \n"
    "ldr   x0, =ag_vectors \n"
    "msr   vbar_el1, x0 \n"
    "mov   x0, #3 << 20 \n" /* CPACR_EL1.FPEN */
    "msr   cpacr_el1, x0 \n"
    "ldr   x0, =ag_thread \n"
    "msr   tpidr_el0, x0 \n"
    "isb \n"
    "b     ag_start \n"
    ".ltorg \n")
/* clang-format on */

__attribute__((used)) void ag_start(void) {
    ag_guard_memory();
    ag_begin();
}

/* The UART's interrupt: caller-saved registers are saved on the program's stack. */
/* clang-format off */
AG_FUNCTION(ag_interrupt, ".text.ag_interrupt",
    "stp x0, x1, [sp, #-160]! \n"
    "stp x2, x3, [sp, #16] \n"
    "stp x4, x5, [sp, #32] \n"
    "stp x6, x7, [sp, #48] \n"
    "stp x8, x9, [sp, #64] \n"
    "stp x10, x11, [sp, #80] \n"
    "stp x12, x13, [sp, #96] \n"
    "stp x14, x15, [sp, #112] \n"
    "stp x16, x17, [sp, #128] \n"
    "stp x18, x30, [sp, #144] \n"
    "stp q0, q1, [sp, #-384]! \n"
    "stp q2, q3, [sp, #32] \n"
    "stp q4, q5, [sp, #64] \n"
    "stp q6, q7, [sp, #96] \n"
    "stp q16, q17, [sp, #128] \n"
    "stp q18, q19, [sp, #160] \n"
    "stp q20, q21, [sp, #192] \n"
    "stp q22, q23, [sp, #224] \n"
    "stp q24, q25, [sp, #256] \n"
    "stp q26, q27, [sp, #288] \n"
    "stp q28, q29, [sp, #320] \n"
    "stp q30, q31, [sp, #352] \n"
    "mrs x0, fpsr \n"
    "str x0, [sp, #-16]! \n"
    "bl  ag_machine_interrupt \n"
    "ldr x0, [sp], #16 \n"
    "msr fpsr, x0 \n"
    "ldp q30, q31, [sp, #352] \n"
    "ldp q28, q29, [sp, #320] \n"
    "ldp q26, q27, [sp, #288] \n"
    "ldp q24, q25, [sp, #256] \n"
    "ldp q22, q23, [sp, #224] \n"
    "ldp q20, q21, [sp, #192] \n"
    "ldp q18, q19, [sp, #160] \n"
    "ldp q16, q17, [sp, #128] \n"
    "ldp q6, q7, [sp, #96] \n"
    "ldp q4, q5, [sp, #64] \n"
    "ldp q2, q3, [sp, #32] \n"
    "ldp q0, q1, [sp], #384 \n"
    "ldp x18, x30, [sp, #144] \n"
    "ldp x16, x17, [sp, #128] \n"
    "ldp x14, x15, [sp, #112] \n"
    "ldp x12, x13, [sp, #96] \n"
    "ldp x10, x11, [sp, #80] \n"
    "ldp x8, x9, [sp, #64] \n"
    "ldp x6, x7, [sp, #48] \n"
    "ldp x4, x5, [sp, #32] \n"
    "ldp x2, x3, [sp, #16] \n"
    "ldp x0, x1, [sp], #160 \n"
    "eret \n")
/* clang-format on */
