#include "ag_uart.h"

#include "ag_core.h"
#include "ag_machine.h"

#include "ag_ring.h"

static ag_ring ring;

void ag_uart_received(uint8_t byte) {
    ag_ring_put(&ring, byte);
}

void ag_uart_overran(void) {
    ring.overruns++;
}

void ag_uart_start(void) {
    ag_machine_listen();
    ag_core_let_interrupt();
}

uint32_t ag_uart_poll(uint8_t *data, uint32_t bytes) {
    return ag_ring_take(&ring, data, bytes);
}

uint32_t ag_uart_read(uint8_t *data, uint32_t bytes) {
    for (;;) {
        const uint32_t got = ag_ring_take(&ring, data, bytes);
        if (got > 0) {
            return got;
        }
        ag_core_wait_while_equal(&ring.written, &ring.read);
    }
}

void ag_uart_write(const uint8_t *data, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        ag_machine_put((char)data[i]);
    }
}

uint32_t ag_uart_room(void) {
    return AG_RING_BYTES;
}

uint32_t ag_uart_overruns(void) {
    return ring.overruns;
}
