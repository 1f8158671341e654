/* The sketch of a program that has a main of its own, built with -Dmain=ag_main. A sketch with its own setup
 * and loop takes the place of this one: the linker never asks for it. */
#include <Arduino.h>

#include "ag_system.h"

extern "C" int ag_main(void);

void setup() {
    Serial.begin(115200);
    const unsigned long start = millis();
    while (!Serial && millis() - start < 5000) { /* USB serial is there once somebody listens */
    }
    ag_system_exit(ag_main());
}

void loop() {
}
