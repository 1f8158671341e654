/* Arm's MPS2 and MPS3 boards: a CMSDK UART (Arm DDI 0479, 4.3), at the address that the board's profile
 * names. */
#include "ag_machine.h"

extern const uint8_t __cmsdk_uart[];

#define UART_DATA AG_REGISTER((uint32_t)__cmsdk_uart + 0x00u)
#define UART_STATE AG_REGISTER((uint32_t)__cmsdk_uart + 0x04u) /* bit 0: transmit buffer full */
#define UART_CTRL AG_REGISTER((uint32_t)__cmsdk_uart + 0x08u)  /* bit 0: transmit */
#define UART_BAUDDIV AG_REGISTER((uint32_t)__cmsdk_uart + 0x10u)

void ag_machine_init(void) {
    UART_BAUDDIV = 25000000u / 115200u; /* 25 MHz on the MPS2's images */
    UART_CTRL = 1u;
}

void ag_machine_put(char c) {
    for (uint32_t wait = 0; (UART_STATE & 1u) && wait < 1000000u; wait++) {
    }
    UART_DATA = (uint8_t)c;
}
