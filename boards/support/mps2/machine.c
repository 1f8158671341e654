/* Arm's MPS2 and MPS3 boards: a CMSDK UART (Arm DDI 0479, 4.3) at the address given by the board's profile.
 */
#include "ag_machine.h"

#include "ag_core.h"

extern const uint8_t __cmsdk_uart[], __cmsdk_uart_irq[]; /* address; number of the receive interrupt */

#define UART_DATA AG_REGISTER((uint32_t)__cmsdk_uart + 0x00u)
#define UART_STATE                                                                                           \
    AG_REGISTER((uint32_t)__cmsdk_uart + 0x04u) /* bit 0: transmit buffer full, 1: receive, 3: overrun */
#define UART_CTRL                                                                                            \
    AG_REGISTER((uint32_t)__cmsdk_uart + 0x08u) /* bit 0: transmit, 1: receive, 3: interrupt                 \
                                                 */
#define UART_BAUDDIV AG_REGISTER((uint32_t)__cmsdk_uart + 0x10u)

#define UART_INTSTATUS AG_REGISTER((uint32_t)__cmsdk_uart + 0x0cu) /* bit 1: receive */

void ag_machine_init(void) {
    UART_BAUDDIV = 25000000u / AG_UART_BAUD; /* 25 MHz on the MPS2's images */
    UART_CTRL = 1u;
}

void ag_machine_put(char c) {
    for (uint32_t wait = 0; (UART_STATE & 1u) && wait < 1000000u; wait++) {
    }
    UART_DATA = (uint8_t)c;
}

void ag_machine_listen(void) {
    UART_CTRL = 1u << 3 | 1u << 1 | 1u;
    AG_NVIC_ENABLE((uint32_t)__cmsdk_uart_irq);
}

void ag_machine_interrupt(void) {
    UART_INTSTATUS = 2u;
    if (UART_STATE & 8u) {
        UART_STATE = 8u;
        ag_uart_overran();
    }
    if (UART_STATE & 2u) {
        ag_uart_received((uint8_t)UART_DATA);
    }
}
