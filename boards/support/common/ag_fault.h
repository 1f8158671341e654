/* The first lines of every fault report. */
#ifndef AG_FAULT_H
#define AG_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Prints " at address 0x...", and which guard region it is in. */
void ag_fault_print_address(uintptr_t address);

/* Prints the fault, the address if `has_address`, and the program counter. */
void ag_fault_print(const char *what, bool has_address, uintptr_t address, uintptr_t pc);

#endif
