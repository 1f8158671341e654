/* ag_system.h on bare metal: by semihosting where it is available, otherwise text by UART and no files. */
#include "ag_core.h"
#include "ag_machine.h"
#include "ag_semihosting.h"
#include "ag_startup.h"

#include "ag_console.h"
#include "ag_flash.h"
#include "ag_system.h"

extern const uint8_t __flash_origin[], __flash_bytes[], __flash_end[];
extern const uint8_t __ram_origin[], __ram_bytes[], __ram_used_end[], __stack_bytes[];
extern const uint32_t __stack_bottom[], __stack_top[];

static int32_t console = -1;
static int32_t opened = -1; /* the last file that was opened or read, and its current offset */
static uint32_t position;

void ag_system_start(void) {
    ag_semihosting_probe();
    console = ag_semihosting_open(":tt", AG_SEMIHOSTING_WRITE);
}

void ag_system_write(const char *text, uint32_t bytes) {
    if (console >= 0) {
        (void)ag_semihosting_write(console, text, bytes);
        return;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        if (text[i] == '\n') {
            ag_machine_put('\r');
        }
        ag_machine_put(text[i]);
    }
}

static int32_t open_file(const char *name, uint32_t mode) {
    opened = ag_semihosting_open(name, mode);
    position = 0;
    return opened;
}

int32_t ag_system_open(const char *name) {
    return open_file(name, AG_SEMIHOSTING_READ);
}

int32_t ag_system_open_file(const char *name, bool fresh) {
    return open_file(name, fresh ? AG_SEMIHOSTING_FRESH : AG_SEMIHOSTING_UPDATE);
}

int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes) {
    opened = -1; /* the next read seeks */
    if (ag_semihosting_seek(handle, offset) != 0 || ag_semihosting_write(handle, data, bytes) != 0) {
        return -1;
    }
    return 0;
}

int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes) {
    if (handle != opened || offset != position) {
        opened = -1; /* the file's offset is unknown after a failed call */
        if (ag_semihosting_seek(handle, offset) != 0) {
            return -1;
        }
    }
    if (ag_semihosting_read(handle, data, bytes) != 0) {
        opened = -1;
        return -1;
    }
    opened = handle;
    position = offset + bytes;
    return 0;
}

void ag_system_close(int32_t handle) {
    ag_semihosting_close(handle);
    opened = -1;
}

void ag_system_exit(int status) {
    if (!ag_semihosting_present()) {
        ag_print("exit ");
        ag_print_i32(status, 0);
        ag_print("\n");
    }
    ag_print_flush();
    ag_semihosting_exit(status);
    for (;;) {
        __asm__ volatile("wfi");
    }
}

/* ---- instructions, in an emulator whose timer counts them, such as QEMU with -icount */

enum { LOOP = 1 << 20, TRIES = 4 }; /* instructions of a loop */

static uint32_t ticks_since(uint32_t begin) {
    return (ag_core_ticks() - begin) & AG_CORE_TICKS;
}

static uint32_t ticks_of_loop(void (*loop)(uint32_t instructions)) {
    const uint32_t begin = ag_core_ticks();
    loop(LOOP);
    return ticks_since(begin);
}

/* Instructions of a tick; 0 where the timer follows time or cycles: then two loops of LOOP instructions take
 * different times, because one has more branches, and the other instructions that take several cycles. */
static float instructions_of_tick(void) {
    const uint32_t first = ticks_of_loop(ag_core_loop);
    for (uint32_t k = 1; k < TRIES; k++) {
        const uint32_t other = ticks_of_loop(k == 1 ? ag_core_slow_loop : ag_core_loop);
        if (other - first + 1u > 2u) {
            return 0.0f;
        }
    }
    return first == 0 ? 0.0f : (float)LOOP / (float)first;
}

/* Instructions since the first call: right if the ticks between two calls are not more than AG_CORE_TICKS. */
static uint32_t instructions(void) {
    static uint32_t last, total, tries;
    static float of_tick;
    if (of_tick == 0.0f && tries < TRIES) {
        tries++;
        of_tick = instructions_of_tick();
    } else if (of_tick > 0.0f) {
        total += (uint32_t)((float)ticks_since(last) * of_tick + 0.5f);
    }
    last = ag_core_ticks();
    return total;
}

uint32_t ag_system_cycles(void) {
    uint32_t cycles;
    return ag_core_cycles(&cycles) ? cycles : instructions();
}

/* For machines without a generator. */
__attribute__((weak)) int ag_machine_random(void *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return AG_NO_GENERATOR;
}

/* From the machine's generator. An emulator without one reads a file of the host, which does not replace a
 * generator that fails. */
int ag_system_random(void *data, uint32_t bytes) {
    int status = ag_machine_random(data, bytes);
    if (status == AG_NO_GENERATOR) {
        const int32_t file = ag_system_open("entropy.bin");
        status = -1;
        if (file >= 0) {
            status = ag_system_read(file, 0, data, bytes);
            ag_system_close(file);
        }
    }
    return status;
}

ag_memory ag_system_memory(void) {
    const uint32_t *lowest = __stack_bottom;
    while (lowest < __stack_top && *lowest == AG_STACK_PAINT) {
        lowest++;
    }
    ag_memory m;
    m.flash_used = (uint32_t)(__flash_end - __flash_origin);
    m.flash_bytes = (uint32_t)(uintptr_t)__flash_bytes;
    m.ram_used = (uint32_t)(__ram_used_end - __ram_origin);
    m.ram_bytes = (uint32_t)(uintptr_t)__ram_bytes;
    m.stack_used = (uint32_t)((const uint8_t *)__stack_top - (const uint8_t *)lowest);
    m.stack_bytes = (uint32_t)(uintptr_t)__stack_bytes;
    return m;
}

/* For machines without a flash driver: a file where semihosting is available, otherwise no flash. */
__attribute__((weak)) int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    return ag_flash_file_for(flash, state_bytes);
}
