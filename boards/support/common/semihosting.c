#include "ag_semihosting.h"

#include "ag_core.h"

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

__attribute__((used)) volatile uint32_t ag_semihosting_probing;
static bool present;

static uint32_t call(uintptr_t operation, const uintptr_t *block) {
    return (uint32_t)ag_core_call(operation, block);
}

void ag_semihosting_probe(void) {
#if defined(AG_CONSOLE_UART)
    return;
#else
#if !defined(AG_CONSOLE_SEMIHOSTING)
    if (ag_core_is_debugged()) { /* a debugger without semihosting would halt the core at the call */
        return;
    }
#endif
    const uintptr_t fine = 0; /* "is the status 0 an error?": no, unless the fault handler answers -1 */
    ag_semihosting_probing = 1;
    present = call(SYS_ISERROR, &fine) == 0;
    ag_semihosting_probing = 0;
#endif
}

bool ag_semihosting_present(void) {
    return present;
}

int32_t ag_semihosting_open(const char *name, uint32_t mode) {
    const uintptr_t block[3] = {(uintptr_t)name, mode, strlen(name)};
    return present ? (int32_t)call(SYS_OPEN, block) : -1;
}

void ag_semihosting_close(int32_t handle) {
    const uintptr_t block[1] = {(uintptr_t)handle};
    if (present) {
        (void)call(SYS_CLOSE, block);
    }
}

int32_t ag_semihosting_seek(int32_t handle, uint32_t offset) {
    const uintptr_t block[2] = {(uintptr_t)handle, offset};
    return present ? (int32_t)call(SYS_SEEK, block) : -1;
}

uint32_t ag_semihosting_read(int32_t handle, void *data, uint32_t bytes) {
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return present ? call(SYS_READ, block) : bytes;
}

uint32_t ag_semihosting_write(int32_t handle, const void *data, uint32_t bytes) {
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, bytes};
    return present ? call(SYS_WRITE, block) : bytes;
}

void ag_semihosting_exit(int32_t status) {
    const uintptr_t block[2] = {0x20026u /* ADP_Stopped_ApplicationExit */, (uintptr_t)status};
    if (present) {
        (void)call(SYS_EXIT_EXTENDED, block);
    }
}
