/* QEMU's `virt`: a PL011 UART (Arm DDI 0183) whose interrupt is routed through a GICv2 (Arm IHI 0048);
 * addresses as in QEMU 7.2's hw/arm/virt.c. */
#include "ag_machine.h"

#include "ag_core.h"

#define DISTRIBUTOR 0x08000000u
#define CPU_INTERFACE 0x08010000u
#define UART 0x09000000u

const uintptr_t ag_machine_devices[] = {DISTRIBUTOR, UART, 0};

#define UART_DATA AG_REGISTER(UART + 0x00u)  /* bit 11: a byte before this one was overrun */
#define UART_FLAGS AG_REGISTER(UART + 0x18u) /* bit 4: nothing received, 5: transmit buffer full */
#define UART_CONTROL AG_REGISTER(UART + 0x30u)
#define UART_LINE AG_REGISTER(UART + 0x2cu)
#define UART_MASK AG_REGISTER(UART + 0x38u) /* bit 4: receive, 6: receive timeout, 10: overrun */
#define UART_CLEAR AG_REGISTER(UART + 0x44u)
#define RECEIVE (1u << 4 | 1u << 6 | 1u << 10)

enum { UART_INTERRUPT = 33, NONE = 1020 };

void ag_machine_init(void) {
    UART_CONTROL = 0;
    UART_LINE = 3u << 5;                   /* 8 bits; no FIFOs: an interrupt at every byte */
    UART_CONTROL = 1u | 1u << 8 | 1u << 9; /* on, transmit, receive; QEMU's has no baud rate */
}

void ag_machine_put(char c) {
    for (uint32_t wait = 0; (UART_FLAGS & 1u << 5) && wait < 1000000u; wait++) {
    }
    UART_DATA = (uint8_t)c;
}

void ag_machine_listen(void) {
    AG_REGISTER(DISTRIBUTOR) = 1u;
    AG_REGISTER(DISTRIBUTOR + 0x100u + 4u * (UART_INTERRUPT / 32)) = 1u << UART_INTERRUPT % 32;
    AG_REGISTER(CPU_INTERFACE + 4u) = 0xf0u; /* interrupts of all priorities */
    AG_REGISTER(CPU_INTERFACE) = 1u;
    UART_MASK = RECEIVE;
}

void ag_machine_interrupt(void) {
    const uint32_t number = AG_REGISTER(CPU_INTERFACE + 0x0cu);
    if ((number & 1023u) >= NONE) {
        return;
    }
    UART_CLEAR = RECEIVE; /* first: a byte that arrives after the last read interrupts again */
    while (!(UART_FLAGS & 1u << 4)) {
        const uint32_t data = UART_DATA;
        if (data & 1u << 11) {
            ag_uart_overran();
        }
        ag_uart_received((uint8_t)data);
    }
    AG_REGISTER(CPU_INTERFACE + 0x10u) = number;
}
