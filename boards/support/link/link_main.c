/* The firmware of the link, for any model: NAME_link.c provides the model and its memory. Starts with the
 * newest checkpoint if there is one, then executes the host's requests. */
#include "ag_flash.h"
#include "ag_link.h"
#include "ag_uart.h"

#include <stddef.h>

static ag_link board;
static ag_flash flash;

#if defined(__GNUC__)
__attribute__((weak))
#endif
void ag_between_parts(void) {
}

static void send(void *ctx, const uint8_t *data, uint32_t bytes) {
    (void)ctx;
    ag_uart_write(data, bytes);
}

int main(void) {
    uint8_t data[AG_LINK_ENCODED];
    const int status = ag_flash_open(&flash, ag_linked_model.state_bytes);
    ag_link_start(&board, &ag_linked_model, ag_linked_memory, status == 0 ? &flash : NULL, send, NULL);
    (void)ag_link_restore(&board);
    ag_uart_start();
    for (;;) {
        const uint32_t bytes = ag_uart_read(data, sizeof data);
        if (bytes == 0) {
            return 0;
        }
        board.count.overruns = ag_uart_overruns();
        ag_link_receive(&board, data, bytes);
    }
}
