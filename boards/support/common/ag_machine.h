/* The interface of a machine's support folder: clock and UART. Sending polls with bounded waits; receiving
 * uses interrupts. A driver for checkpoints in flash, ag_flash_open (runtime/ag_flash.h), is optional. */
#ifndef AG_MACHINE_H
#define AG_MACHINE_H

#include <stdint.h>

#define AG_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* The UART's speed, where the machine has one; ./scons baud= sets it. */
#ifndef AG_UART_BAUD
#define AG_UART_BAUD 115200
#endif

/* Called once, after .data and .bss are initialised and before anything prints. */
void ag_machine_init(void);

/* Sends one character. Gives up after a bounded wait. */
void ag_machine_put(char c);

enum { AG_NO_GENERATOR = 1 };

/* Random bytes of the chip's generator: 0, AG_NO_GENERATOR where the chip has none, or -1 where it fails.
 * Optional. */
int ag_machine_random(void *data, uint32_t bytes);

/* Enables the UART's receive interrupt; ag_machine_interrupt then passes each byte to ag_uart_received
 * (uart.c), and a byte that overran the previous one to ag_uart_overran. */
void ag_machine_listen(void);
__attribute__((used)) void ag_machine_interrupt(void); /* only assembly names it */
void ag_uart_received(uint8_t byte);
void ag_uart_overran(void);

#endif
