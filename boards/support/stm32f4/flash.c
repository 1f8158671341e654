/* Checkpoints in the STM32F4's flash: sectors of 128 KB, programmed by words at 2.7 to 3.6 V. ST RM0090 rev
 * 19, chapter 3. While a sector is erased (1 to 2 s) instruction fetch stalls: bytes that arrive in that time
 * are lost and counted, and a watchdog must allow for it.
 *
 * QEMU's chip has no flash controller, so with semihosting a file is used instead; the driver itself is
 * tested against a model of the registers (tests/c/stm32f4_flash.c). */
#include "ag_flash.h"

#include <stdbool.h>
#include <string.h>

#if defined(AG_REGISTER_MODEL) /* the test's registers and memory */
#include AG_REGISTER_MODEL
#else
#include "ag_machine.h"
#include "ag_semihosting.h"

extern const uint8_t __flash_origin[], __store_origin[], __store_slots[], __store_slot_bytes[];
#define FLASH_ORIGIN ((uint32_t)__flash_origin)
#define STORE_ORIGIN ((uint32_t)__store_origin)
#define STORE_SLOTS ((uint32_t)__store_slots)
#define STORE_SLOT_BYTES ((uint32_t)__store_slot_bytes)

static uint32_t get(uint32_t address) {
    return AG_REGISTER(address);
}

static void set(uint32_t address, uint32_t value) {
    AG_REGISTER(address) = value;
}
#endif

#define FLASH_ACR 0x40023c00u
#define FLASH_KEYR 0x40023c04u
#define FLASH_SR 0x40023c0cu
#define FLASH_CR 0x40023c10u

#ifndef WAIT
#define WAIT 50000000 /* iterations of a polling loop: some seconds */
#endif

#define BUSY (1u << 16)
#define ERRORS 0xf2u /* OPERR, WRPERR, PGAERR, PGPERR, PGSERR: cleared by writing 1 */
#define PROGRAM 1u
#define ERASE 2u
#define WORDS (2u << 8)
#define START (1u << 16)
#define LOCK (1u << 31)

/* Waits for the current operation: 0 when it succeeded. */
static int wait_until_done(void) {
    for (int32_t i = 0; i < WAIT; i++) {
        const uint32_t status = get(FLASH_SR);
        if ((status & BUSY) == 0) {
            set(FLASH_SR, ERRORS | 1u);
            return (status & ERRORS) == 0 ? 0 : -1;
        }
    }
    return -1;
}

static int unlock(void) {
    if (wait_until_done() != 0 &&
        wait_until_done() != 0) { /* the first call clears errors of an earlier operation */
        return -1;
    }
    if (get(FLASH_CR) & LOCK) {
        set(FLASH_KEYR, 0x45670123u);
        set(FLASH_KEYR, 0xcdef89abu);
    }
    return (get(FLASH_CR) & LOCK) == 0 ? 0 : -1;
}

static void lock(void) {
    if ((get(FLASH_SR) & BUSY) == 0) {
        set(FLASH_CR, LOCK);
    }
}

/* The data cache may hold the old contents. */
static void flush_cache(void) {
    const uint32_t acr = get(FLASH_ACR);
    set(FLASH_ACR, acr & ~(1u << 10));
    set(FLASH_ACR, (acr & ~(1u << 10)) | 1u << 12);
    set(FLASH_ACR, acr & ~(1u << 12));
}

static uint32_t sector_of(uint32_t address) {
    const uint32_t offset = address - FLASH_ORIGIN;
    return offset < 0x10000u ? offset / 0x4000u : offset < 0x20000u ? 4u : 4u + offset / 0x20000u;
}

static bool is_inside(uint32_t address, uint32_t bytes) {
    const uint32_t all = STORE_SLOTS * STORE_SLOT_BYTES;
    return address <= all && bytes <= all - address;
}

static int read_flash(void *ctx, uint32_t address, void *data, uint32_t bytes) {
    (void)ctx;
    if (!is_inside(address, bytes)) {
        return -1;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t at = STORE_ORIGIN + address + i, word = get(at & ~3u);
        ((uint8_t *)data)[i] = (uint8_t)(word >> 8u * (at & 3u));
    }
    return 0;
}

static int program_flash(void *ctx, uint32_t address, const void *data, uint32_t bytes) {
    int status = 0;
    (void)ctx;
    if (!is_inside(address, bytes) || address % 4u != 0 || bytes % 4u != 0 || unlock() != 0) {
        return -1;
    }
    set(FLASH_CR, WORDS | PROGRAM);
    for (uint32_t at = 0; at < bytes && status == 0; at += 4) {
        uint32_t word;
        memcpy(&word, (const uint8_t *)data + at, sizeof word);
        set(STORE_ORIGIN + address + at, word);
        status = wait_until_done();
    }
    lock();
    return status;
}

static int erase_flash(void *ctx, uint32_t address) {
    (void)ctx;
    if (!is_inside(address, STORE_SLOT_BYTES) || address % STORE_SLOT_BYTES != 0 || unlock() != 0) {
        return -1;
    }
    const uint32_t sector = sector_of(STORE_ORIGIN + address);
    set(FLASH_CR, WORDS | ERASE | sector << 3);
    set(FLASH_CR, WORDS | ERASE | sector << 3 | START);
    const int status = wait_until_done();
    lock();
    flush_cache();
    return status;
}

int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    if (ag_semihosting_present()) {
        return ag_flash_file_for(flash, state_bytes);
    }
    if (STORE_SLOTS < 2u) {
        return AG_STORE_ERR_NO_FLASH;
    }
    flash->read = read_flash;
    flash->program = program_flash;
    flash->erase = erase_flash;
    flash->ctx = NULL;
    flash->slots = STORE_SLOTS;
    flash->slot_bytes = STORE_SLOT_BYTES;
    return AG_STORE_OK;
}
