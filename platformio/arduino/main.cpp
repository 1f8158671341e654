#include "Arduino.h"

AgSerial Serial;

/* What C++ objects ask for; the program has no end at which they could be destroyed. */
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
