/* ag_system.h on Arduino: text is sent to Serial, and there are no files. */
#include <Arduino.h>

#include "ag_console.h"
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

void ag_system_close(int32_t handle) {
    (void)handle;
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
