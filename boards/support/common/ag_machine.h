/* What each folder of machines supplies: its clock and its UART, by polling, with bounded waits. */
#ifndef AG_MACHINE_H
#define AG_MACHINE_H

#include <stdint.h>

#define AG_REGISTER(address) (*(volatile uint32_t *)(address))

/* Once, after .data and .bss are set up and before anything prints. */
void ag_machine_init(void);

/* One character out. Gives up after a bounded wait. */
void ag_machine_put(char c);

#endif
