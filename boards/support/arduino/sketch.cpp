/* The sketch for a program with its own main, built with -Dmain=ag_main. A sketch with its own setup and loop
 * replaces this one: the linker then does not need it. */
#include <Arduino.h>

#include "ag_system.h"

/* Of a program in C, and of one in C++: the other is missing. */
extern "C" int ag_main(void) __attribute__((weak));
int ag_main_of_cpp(void) __asm__("_Z7ag_mainv") __attribute__((weak));

void setup() {
    Serial.begin(115200);
    const unsigned long start = millis();
    while (!Serial && millis() - start < 5000) { /* USB serial is ready once a terminal is connected */
    }
    ag_system_exit(ag_main != nullptr ? ag_main() : ag_main_of_cpp());
}

void loop() {
}
