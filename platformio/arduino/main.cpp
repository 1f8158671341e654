#include "Arduino.h"

AgSerial Serial;

/* Required by C++ objects with static storage; the program never ends, so they are never destroyed. */
extern "C" {
void *__dso_handle;
int __cxa_atexit(void (*)(void *), void *, void *) {
    return 0;
}
void __cxa_pure_virtual(void) {
    ag_system_exit(AG_EXIT_FAULT);
}
}

int main() {
    setup();
    for (;;) {
        loop();
    }
}
