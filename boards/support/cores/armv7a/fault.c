/* All processor faults: print a report and exit with AG_EXIT_FAULT. The report starts at the top of the
 * stack, whose contents are no longer needed. */
#include "ag_fault.h"

#include "ag_console.h"
#include "ag_system.h"

void ag_fault_report(uint32_t kind, uint32_t pc);

enum { UNDEFINED, SERVICE, PREFETCH, DATA, OTHER };

#define TO_REPORT(kind)                                                                                      \
    "mov r0, #" #kind " \n"                                                                                  \
    "mov r1, lr \n"                                                                                          \
    "cps #0x13 \n"                                                                                           \
    "ldr sp, =__stack_top \n"                                                                                \
    "b   ag_fault_report \n"                                                                                 \
    ".ltorg \n"

__attribute__((naked, used)) void ag_undefined(void) {
    __asm__ volatile("sub lr, lr, #2 \n" TO_REPORT(0));
}

/* The probe's call without semihosting arrives here: return -1. */
__attribute__((naked, used)) void ag_service(void) {
    __asm__ volatile("ldr   r2, =ag_semihosting_probing \n"
                     "ldr   r3, [r2] \n"
                     "cbz   r3, 1f \n"
                     "mov   r3, #0 \n"
                     "str   r3, [r2] \n"
                     "mvn   r0, #0 \n"
                     "subs  pc, lr, #0 \n"
                     "1: sub lr, lr, #2 \n" TO_REPORT(1));
}

__attribute__((naked, used)) void ag_prefetch_abort(void) {
    __asm__ volatile("sub lr, lr, #4 \n" TO_REPORT(2));
}

__attribute__((naked, used)) void ag_data_abort(void) {
    __asm__ volatile("sub lr, lr, #8 \n" TO_REPORT(3));
}

__attribute__((naked, used)) void ag_other(void) {
    __asm__ volatile(TO_REPORT(4));
}

static const char *fault_name(uint32_t kind, uint32_t status) {
    if (kind == UNDEFINED) {
        return "undefined instruction";
    }
    if (kind == PREFETCH || kind == DATA) {
        const uint32_t source = (status >> 6 & 16u) | (status & 15u); /* Arm DDI 0406C, table B3-23 */
        return source == 1u                                                     ? "alignment"
               : source == 5u || source == 7u || source == 13u || source == 15u ? "memory protection"
                                                                                : "bus error";
    }
    return kind == SERVICE ? "unknown service call" : "processor fault";
}

__attribute__((used)) void ag_fault_report(uint32_t kind, uint32_t pc) {
    uint32_t status = 0, address = 0;
    if (kind == DATA) {
        __asm__ volatile("mrc p15, 0, %0, c5, c0, 0" : "=r"(status));
        __asm__ volatile("mrc p15, 0, %0, c6, c0, 0" : "=r"(address));
    } else if (kind == PREFETCH) {
        __asm__ volatile("mrc p15, 0, %0, c5, c0, 1" : "=r"(status));
        address = pc;
    }
    ag_fault_print(fault_name(kind, status), kind == DATA || kind == PREFETCH, address, pc);
    ag_print(" (FSR ");
    ag_print_hex(status);
    ag_print(")\n");
    ag_system_exit(AG_EXIT_FAULT);
}
