/* Start-up from reset in supervisor mode: paints the stack for the high-water mark, enables floating point
 * and the MMU. All code is Thumb, including exceptions. Arm DDI 0406C, B1.8 (exceptions), B4.1 (registers).
 */
#include "ag_core.h"
#include "ag_startup.h"

void Reset_Handler(void);
void ag_start(void);

/* The vectors: at the start of the code, as the linker script requires. */
__attribute__((section(".vectors"), naked, used, target("thumb"))) void ag_vectors(void) {
    __asm__ volatile("b.w Reset_Handler \n"
                     "b.w ag_undefined \n"
                     "b.w ag_service \n"
                     "b.w ag_prefetch_abort \n"
                     "b.w ag_data_abort \n"
                     "b.w ag_other \n"
                     "b.w ag_interrupt \n"
                     "b.w ag_other \n");
}

__attribute__((naked)) void Reset_Handler(void) {
    __asm__ volatile("cpsid if, #0x13 \n"
                     "ldr   r0, =__stack_bottom \n"
                     "ldr   r1, =__stack_top \n"
                     "mov   sp, r1 \n"
                     "ldr   r2, =%c0 \n"
                     "1: \n"
                     "str   r2, [r0], #4 \n"
                     "cmp   r0, r1 \n"
                     "blo   1b \n"
                     "ldr   r0, =ag_vectors \n"
                     "bic   r0, r0, #1 \n"
                     "mcr   p15, 0, r0, c12, c0, 0 \n" /* VBAR */
                     "mrc   p15, 0, r0, c1, c0, 0 \n"
                     "bic   r0, r0, #0x2000 \n"     /* SCTLR.V: vectors at VBAR */
                     "orr   r0, r0, #0x40000000 \n" /* SCTLR.TE: exceptions in Thumb */
                     "mcr   p15, 0, r0, c1, c0, 0 \n"
                     "mrc   p15, 0, r0, c1, c0, 2 \n"
                     "orr   r0, r0, #0xf00000 \n" /* CPACR: CP10 and CP11 */
                     "mcr   p15, 0, r0, c1, c0, 2 \n"
                     "isb \n"
                     "mov   r0, #0x40000000 \n" /* FPEXC.EN */
                     "vmsr  fpexc, r0 \n"
                     "b     ag_start \n"
                     ".ltorg \n"
                     :
                     : "i"(AG_STACK_PAINT));
}

__attribute__((used)) void ag_start(void) {
    ag_guard_memory();
    ag_begin();
}

/* The UART's interrupt: caller-saved registers are saved on the program's stack. */
__attribute__((naked, used)) void ag_interrupt(void) {
    __asm__ volatile("sub   lr, lr, #4 \n"
                     "srsdb sp!, #0x13 \n"
                     "cps   #0x13 \n"
                     "push  {r0-r3, r12, lr} \n"
                     "vmrs  r0, fpscr \n"
                     "mov   r1, sp \n"
                     "and   r1, r1, #4 \n" /* the procedure call standard requires 8-byte alignment */
                     "sub   sp, sp, r1 \n"
                     "push  {r0, r1} \n"
                     "vpush {d0-d7} \n"
                     "vpush {d16-d31} \n"
                     "bl    ag_machine_interrupt \n"
                     "vpop  {d16-d31} \n"
                     "vpop  {d0-d7} \n"
                     "pop   {r0, r1} \n"
                     "add   sp, sp, r1 \n"
                     "vmsr  fpscr, r0 \n"
                     "pop   {r0-r3, r12, lr} \n"
                     "rfeia sp! \n");
}
