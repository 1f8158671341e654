#include "ag_uart.h"

#include "ag_machine.h"
#include "ag_startup.h"

#include "ag_ring.h"

static ag_ring ring;

void ag_uart_received(uint8_t byte) {
    ag_ring_put(&ring, byte);
}

void ag_uart_overran(void) {
    ring.overruns++;
}

void ag_uart_start(void) {
    __asm__ volatile("" ::"r"(ag_external_vectors)); /* the linker keeps them for this */
    ag_machine_listen();
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
        /* An interrupt between the look and the sleep is not taken but ends the sleep. */
        __asm__ volatile("cpsid i" ::: "memory");
        if (ring.written == ring.read) {
            __asm__ volatile("wfi");
        }
        __asm__ volatile("cpsie i\n isb" ::: "memory");
    }
}

void ag_uart_write(const uint8_t *data, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        ag_machine_put((char)data[i]);
    }
}

uint32_t ag_uart_overruns(void) {
    return ring.overruns;
}
