/* All processor faults: print a report and exit with AG_EXIT_FAULT. The report starts at the top of the
 * stack, whose contents are no longer needed. */
#include "ag_core.h"
#include "ag_fault.h"

#include "ag_console.h"
#include "ag_system.h"

void ag_fault_report(uint64_t syndrome, uint64_t address, uint64_t pc);

/* The probe's call without semihosting arrives here: return -1 and skip the instruction. */
/* clang-format off */
AG_FUNCTION(ag_synchronous, ".text.ag_synchronous",
    "ldr  x2, =ag_semihosting_probing \n"
    "ldr  w3, [x2] \n"
    "cbz  w3, ag_fault \n"
    "str  wzr, [x2] \n"
    "mrs  x3, elr_el1 \n"
    "add  x3, x3, #4 \n"
    "msr  elr_el1, x3 \n"
    "mov  x0, #-1 \n"
    "eret \n"
    ".ltorg \n")
/* clang-format on */

/* clang-format off */
AG_FUNCTION(ag_fault, ".text.ag_fault",
    "msr  spsel, #1 \n"
    "ldr  x0, =__stack_top \n"
    "mov  sp, x0 \n"
    "mrs  x0, esr_el1 \n"
    "mrs  x1, far_el1 \n"
    "mrs  x2, elr_el1 \n"
    "b    ag_fault_report \n"
    ".ltorg \n")
/* clang-format on */

__attribute__((used)) void ag_fault_report(uint64_t syndrome, uint64_t address, uint64_t pc) {
    const uint32_t class = (uint32_t)syndrome >> 26,
                   status = (uint32_t)syndrome & 63u; /* Arm DDI 0487, D13.2.37 */
    const bool abort = class == 0x20u || class == 0x21u || class == 0x24u || class == 0x25u;
    const char *what = "processor fault";
    if (class == 0) {
        what = "undefined instruction";
    } else if (class == 7u) {
        what = "no floating point (is it on?)";
    } else if (class == 0x22u || class == 0x26u || (abort && status == 0x21u)) {
        what = "alignment";
    } else if (abort) {
        what = status < 0x10u ? "memory protection" : "bus error";
    }
    ag_fault_print(what, abort, address, pc);
    ag_print(" (ESR ");
    ag_print_hex((uint32_t)syndrome);
    ag_print(")\n");
    ag_system_exit(AG_EXIT_FAULT);
}
