/* All processor faults: print a report and exit with AG_EXIT_FAULT. Where the stack is nearly full or its
 * pointer is invalid, the report starts at the top of the stack, whose contents are no longer needed. */
#include "ag_core.h"
#include "ag_fault.h"
#include "ag_machine.h"
#include "ag_semihosting.h"

#include "ag_console.h"
#include "ag_system.h"

#include <stddef.h>

/* Armv7-M ARM, B3.2; reserved on Armv6-M, where they read 0 */
#define CFSR AG_REGISTER(0xe000ed28u)
#define HFSR AG_REGISTER(0xe000ed2cu)
#define MMFAR AG_REGISTER(0xe000ed34u)
#define BFAR AG_REGISTER(0xe000ed38u)

void ag_fault_report(const uint32_t *frame);

/* The probe's BKPT without semihosting also arrives here: return -1 and skip the instruction (2 bytes). The
 * report receives the exception frame, or NULL where it starts at the top of the stack. */
__attribute__((naked)) void Fault_Handler(void) {
    __asm__ volatile(".syntax unified \n" /* Armv6-M code too */
                     "mov   r1, lr \n"
                     "movs  r0, #4 \n"
                     "tst   r0, r1 \n"
                     "mrs   r0, msp \n"
                     "beq   4f \n"
                     "mrs   r0, psp \n"
                     "4: \n"
                     "ldr   r2, =ag_semihosting_probing \n"
                     "ldr   r1, [r2] \n"
                     "cmp   r1, #0 \n"
                     "beq   1f \n"
                     "movs  r1, #0 \n"
                     "str   r1, [r2] \n"
                     "ldr   r1, =0xffffffff \n"
                     "str   r1, [r0] \n"
                     "ldr   r2, =0xe000ed2c \n" /* clear HFSR, which keeps the bits until 1 is written */
                     "str   r1, [r2] \n"
                     "ldr   r1, [r0, #24] \n"
                     "adds  r1, #2 \n"
                     "str   r1, [r0, #24] \n"
                     "bx    lr \n"
                     "1: \n"
                     "ldr   r1, =__stack_bottom+512 \n"
                     "ldr   r2, =__stack_top \n"
                     "cmp   r0, r1 \n"
                     "blo   2f \n"
                     "cmp   r0, r2 \n"
                     "blo   3f \n"
                     "2: \n"
                     "msr   msp, r2 \n"
                     "movs  r0, #0 \n"
                     "3: \n"
                     "ldr   r1, =ag_fault_report \n"
                     "bx    r1 \n"
                     ".ltorg \n");
}

static const char *kind(uint32_t status) {
    if (status & 0x100000u) {
        return "stack overflow";
    }
    if (status & 0xffu) {
        return "memory protection";
    }
    if (status & 0xff00u) {
        return "bus error";
    }
    if (status & 0x10000u) {
        return "undefined instruction";
    }
    if (status & 0x80000u) {
        return "no coprocessor (is the FPU on?)";
    }
    if (status & 0x2000000u) {
        return "division by zero";
    }
    return "processor fault";
}

__attribute__((used)) void ag_fault_report(const uint32_t *frame) {
    const uint32_t status = CFSR;
    ag_print("\nfault: ");
    ag_print(kind(status));
    if (status & 0x80u) {
        ag_fault_print_address(MMFAR);
    } else if (status & 0x8000u) {
        ag_fault_print_address(BFAR);
    }
    if (status & 0x1010u) { /* the frame itself could not be pushed */
        ag_print(", stack overflow");
    } else if (frame != NULL) {
        ag_print(", pc 0x");
        ag_print_hex(frame[6]);
    }
    ag_print(" (CFSR ");
    ag_print_hex(status);
    ag_print(", HFSR ");
    ag_print_hex(HFSR);
    ag_print(")\n");
    ag_system_exit(AG_EXIT_FAULT);
}
