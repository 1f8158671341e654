/* The sketch for a program with its own main, built with -Dmain=ag_main. A sketch with its own setup and loop
 * replaces this one: the linker then does not need it. */
#include <Arduino.h>

#include "ag_system.h"

extern "C" int ag_main(void);

void setup() {
    Serial.begin(115200);
    const unsigned long start = millis();
    while (!Serial && millis() - start < 5000) { /* USB serial is ready once a terminal is connected */
    }
    ag_system_exit(ag_main());
}

void loop() {
}
