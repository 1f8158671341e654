/* What each folder of machines supplies: its clock and its UART. Sending polls, with bounded waits; receiving
 * interrupts. */
#ifndef AG_MACHINE_H
#define AG_MACHINE_H

#include <stdint.h>

#define AG_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* Once, after .data and .bss are set up and before anything prints. */
void ag_machine_init(void);

/* One character out. Gives up after a bounded wait. */
void ag_machine_put(char c);

/* Let the UART interrupt at every byte; ag_machine_interrupt then hands it to ag_uart_received (uart.c), and
 * a byte that came before the last one was taken to ag_uart_overran. */
void ag_machine_listen(void);
void ag_machine_interrupt(void);
void ag_uart_received(uint8_t byte);
void ag_uart_overran(void);

#endif
