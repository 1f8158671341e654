/* ag_system.h on Arduino: text is sent to Serial, and there are no files. */
#include <Arduino.h>

#include "ag_console.h"
#include "ag_flash.h"
#include "ag_system.h"

void ag_system_write(const char *text, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i++) {
        if (text[i] == '\n') {
            Serial.write('\r');
        }
        Serial.write((uint8_t)text[i]);
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

int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    (void)flash;
    (void)state_bytes;
    return AG_STORE_ERR_NO_FLASH;
}

void ag_system_exit(int status) {
    ag_print("exit ");
    ag_print_i32(status, 0);
    ag_print("\n");
    ag_print_flush();
    Serial.flush();
    for (;;) {
        delay(1000);
    }
}

ag_memory ag_system_memory(void) {
    return ag_memory{0, 0, 0, 0, 0, 0};
}
