/* The link of a program on the host: standard input and output. */
#include "ag_uart.h"

#include "ag_flash.h"

#include <stdio.h>

void ag_uart_start(void) {
}

uint32_t ag_uart_read(uint8_t *data, uint32_t bytes) {
    const int c = bytes > 0 ? getchar() : EOF;
    if (c == EOF) {
        return 0;
    }
    data[0] = (uint8_t)c;
    return 1;
}

uint32_t ag_uart_poll(uint8_t *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return 0;
}

void ag_uart_write(const uint8_t *data, uint32_t bytes) {
    (void)fwrite(data, 1, bytes, stdout);
    (void)fflush(stdout);
}

uint32_t ag_uart_room(void) {
    return 4096; /* a pipe holds no less (POSIX, PIPE_BUF on Linux) */
}

uint32_t ag_uart_overruns(void) {
    return 0;
}

int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    return ag_flash_file_for(flash, state_bytes);
}
