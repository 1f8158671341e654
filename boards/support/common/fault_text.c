#include "ag_fault.h"

#include "ag_console.h"

extern const uint8_t __ram_origin[], __ram_end[], __guard_below_bytes[], __guard_above_bytes[];

void ag_fault_print_address(uintptr_t address) {
    ag_print(" at address 0x");
    ag_print_hex((uint32_t)address);
    const uintptr_t low = (uintptr_t)__ram_origin, high = (uintptr_t)__ram_end;
    if (address < low && low - address <= (uintptr_t)__guard_below_bytes) {
        ag_print(", under the stack");
    } else if (address >= high && address - high < (uintptr_t)__guard_above_bytes) {
        ag_print(", above the board's RAM");
    }
}

void ag_fault_print(const char *what, bool has_address, uintptr_t address, uintptr_t pc) {
    ag_print("\nfault: ");
    ag_print(what);
    if (has_address) {
        ag_fault_print_address(address);
    }
    ag_print(", pc 0x");
    ag_print_hex((uint32_t)pc);
}
