/* The firmware of the link, for any model: NAME_link.c provides the model and its memory. Starts with the
 * newest checkpoint if there is one, then executes the host's requests. Rounds of federated training take the
 * samples of samples.bin, or of a set that is linked in. */
#include "ag_flash.h"
#include "ag_link.h"
#include "ag_system.h"
#include "ag_uart.h"

#include <stddef.h>

static ag_link board;
static ag_flash flash;
static ag_samples samples;

#if defined(__GNUC__)
__attribute__((weak))
#endif
void ag_between_parts(void) {
}

static int fetch(void *data, uint32_t bytes) {
    const int32_t file = ag_system_open("inputs.bin");
    const int status = file < 0 ? -1 : ag_system_read(file, 0, data, bytes);
    if (file >= 0) {
        ag_system_close(file);
    }
    return status;
}

static void send(void *ctx, const uint8_t *data, uint32_t bytes) {
    (void)ctx;
    ag_uart_write(data, bytes);
}

int main(void) {
    uint8_t data[64];
    const int status = ag_flash_open(&flash, ag_linked_model.state_bytes);
    ag_link_start(&board, &ag_linked_model, ag_linked_memory, status == 0 ? &flash : NULL, send, NULL);
    board.window = ag_uart_room();
    board.fetch = fetch;
    board.round.samples = ag_samples_open(&samples) == AG_SAMPLES_OK ? &samples : NULL;
    board.round.cycles = ag_system_cycles;
    board.round.entropy = ag_system_random;
    (void)ag_link_restore(&board);
    if (status != 0) {
        board.start = status;
    }
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
