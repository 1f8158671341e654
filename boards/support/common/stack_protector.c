/* What code that is compiled with -fstack-protector needs. newlib's own report of a smashed stack brings
 * stdio, and with it a heap. */
#include "ag_fault.h"

#include "ag_console.h"
#include "ag_system.h"

extern uintptr_t ag_stack_guard __asm__("__stack_chk_guard");
void ag_stack_smashed(void) __asm__("__stack_chk_fail");

__attribute__((used)) uintptr_t ag_stack_guard = 0x000aff0du; /* strings end at its zero byte */

__attribute__((used, noreturn)) void ag_stack_smashed(void) {
    ag_fault_print("stack smashed", false, 0, (uintptr_t)__builtin_return_address(0));
    ag_print("\n");
    ag_system_exit(AG_EXIT_FAULT);
}
