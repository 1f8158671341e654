/* ag_system.h for a project with its own start-up code: fill in ag_system_write, which text output needs.
 * defaults.c has what else may be written for the chip: files, flash for checkpoints, a measure of memory. */
#include "ag_console.h"
#include "ag_system.h"

void ag_system_write(const char *text, uint32_t bytes) {
    /* Send the bytes, for example by HAL_UART_Transmit(&huart2, (uint8_t *)text, (uint16_t)bytes,
     * HAL_MAX_DELAY). */
    (void)text;
    (void)bytes;
}

void ag_system_exit(int status) {
    (void)status;
    ag_print_flush();
    for (;;) {
    }
}
