/* The beginning of every report of a fault. */
#ifndef AG_FAULT_H
#define AG_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Prints " at address 0x...", and which guard it hit. */
void ag_fault_print_address(uintptr_t address);

/* Prints what happened, the address where `has_address`, and where the program was. */
void ag_fault_print(const char *what, bool has_address, uintptr_t address, uintptr_t pc);

#endif
