/* ag_system.h on Arduino: text is sent to Serial; the rest is as in ../plain/defaults.c. */
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
