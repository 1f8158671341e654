#include "ag_semihosting.h"

#include "ag_machine.h"

#include <string.h>

enum {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_ISERROR = 0x08,
    SYS_SEEK = 0x0a,
    SYS_EXIT_EXTENDED = 0x20,
};

#define DHCSR AG_REGISTER(0xe000edf0u) /* Armv7-M ARM, C1.6.2; bit 0 C_DEBUGEN: a debugger is attached */

volatile uint32_t ag_semihosting_probing;
static bool present;

static uint32_t call(uint32_t operation, const void *block) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory", "cc");
    return r0;
}

void ag_semihosting_probe(void) {
#if defined(AG_CONSOLE_UART)
    return;
#else
#if !defined(AG_CONSOLE_SEMIHOSTING)
    if (DHCSR & 1u) { /* a debugger that serves no semihosting would halt the core at the bkpt */
        return;
    }
#endif
    const uint32_t fine = 0; /* "is the status 0 an error?": no, unless the fault handler answers -1 */
    ag_semihosting_probing = 1;
    present = call(SYS_ISERROR, &fine) == 0;
    ag_semihosting_probing = 0;
#endif
}

bool ag_semihosting_present(void) {
    return present;
}

int32_t ag_semihosting_open(const char *name, uint32_t mode) {
    const uint32_t block[3] = {(uint32_t)name, mode, (uint32_t)strlen(name)};
    return present ? (int32_t)call(SYS_OPEN, block) : -1;
}

void ag_semihosting_close(int32_t handle) {
    const uint32_t block[1] = {(uint32_t)handle};
    if (present) {
        (void)call(SYS_CLOSE, block);
    }
}

int32_t ag_semihosting_seek(int32_t handle, uint32_t offset) {
    const uint32_t block[2] = {(uint32_t)handle, offset};
    return present ? (int32_t)call(SYS_SEEK, block) : -1;
}

uint32_t ag_semihosting_read(int32_t handle, void *data, uint32_t bytes) {
    const uint32_t block[3] = {(uint32_t)handle, (uint32_t)data, bytes};
    return present ? call(SYS_READ, block) : bytes;
}

uint32_t ag_semihosting_write(int32_t handle, const void *data, uint32_t bytes) {
    const uint32_t block[3] = {(uint32_t)handle, (uint32_t)data, bytes};
    return present ? call(SYS_WRITE, block) : bytes;
}

void ag_semihosting_exit(int32_t status) {
    const uint32_t block[2] = {0x20026u /* ADP_Stopped_ApplicationExit */, (uint32_t)status};
    if (present) {
        (void)call(SYS_EXIT_EXTENDED, block);
    }
}
