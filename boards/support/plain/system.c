/* ag_system.h for a project with its own start-up code: fill in ag_system_write, which text output needs.
 * There are no files and no measure of memory. */
#include "ag_console.h"
#include "ag_flash.h"
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

int32_t ag_system_open(const char *name) {
    (void)name;
    return -1;
}

int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes) {
    (void)handle;
    (void)offset;
    (void)data;
    (void)bytes;
    return -1;
}

int32_t ag_system_open_file(const char *name, bool fresh) {
    (void)name;
    (void)fresh;
    return -1;
}

int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes) {
    (void)handle;
    (void)offset;
    (void)data;
    (void)bytes;
    return -1;
}

void ag_system_close(int32_t handle) {
    (void)handle;
}

ag_memory ag_system_memory(void) {
    const ag_memory none = {0, 0, 0, 0, 0, 0};
    return none;
}

/* Flash for checkpoints: none. docs/store.md of autodiff_gen describes a driver. */
int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    (void)flash;
    (void)state_bytes;
    return AG_STORE_ERR_NO_FLASH;
}
