#include "ag_flash.h"
#include "ag_system.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SLOTS = 2, UNIT = 4096, OVERHEAD = 256 };

static int32_t handle = -1;
static uint32_t slot_size; /* bytes */

static int read_file(void *ctx, uint32_t address, void *data, uint32_t bytes) {
    (void)ctx;
    return ag_system_read(handle, address, data, bytes);
}

static int program_file(void *ctx, uint32_t address, const void *data, uint32_t bytes) {
    (void)ctx;
    return ag_system_write_file(handle, address, data, bytes);
}

static int fill(uint32_t address, uint32_t bytes) {
    uint8_t blank[UNIT / 16];
    memset(blank, 0xff, sizeof blank);
    for (uint32_t offset = 0; offset < bytes; offset += (uint32_t)sizeof blank) {
        const uint32_t remaining = bytes - offset,
                       count = remaining < sizeof blank ? remaining : (uint32_t)sizeof blank;
        if (ag_system_write_file(handle, address + offset, blank, count) != 0) {
            return -1;
        }
    }
    return 0;
}

static int erase_file(void *ctx, uint32_t address) {
    (void)ctx;
    return fill(address, slot_size);
}

static bool has_size(uint32_t bytes) {
    uint8_t byte;
    return ag_system_read(handle, bytes - 1, &byte, 1) == 0 && ag_system_read(handle, bytes, &byte, 1) != 0;
}

/* Whether the file holds nothing that was programmed, as one whose creation was interrupted. */
static bool is_blank(void) {
    uint8_t data[UNIT / 16];
    uint32_t address = 0, count = (uint32_t)sizeof data;
    while (count > 0) {
        if (ag_system_read(handle, address, data, count) != 0) {
            count /= 2; /* there are fewer */
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (data[i] != 0xff) {
                return false;
            }
        }
        address += count;
    }
    return true;
}

int ag_flash_file_open(ag_flash *flash, const char *name, uint32_t slots, uint32_t slot_bytes) {
    const uint32_t bytes = slots * slot_bytes;
    slot_size = slot_bytes;
    handle = ag_system_open_file(name, false);
    if (handle >= 0 && !has_size(bytes)) {
        const bool blank = is_blank();
        ag_system_close(handle);
        handle = -1;
        if (!blank) {
            return AG_STORE_ERR_SIZE;
        }
    }
    if (handle < 0) {
        handle = ag_system_open_file(name, true);
        if (handle < 0 || fill(0, bytes) != 0) {
            return AG_STORE_ERR_NO_FLASH;
        }
    }
    flash->read = read_file;
    flash->program = program_file;
    flash->erase = erase_file;
    flash->ctx = NULL;
    flash->slots = slots;
    flash->slot_bytes = slot_bytes;
    return AG_STORE_OK;
}

int ag_flash_file_for(ag_flash *flash, uint32_t state_bytes) {
    return ag_flash_file_open(flash, "flash.bin", SLOTS, (state_bytes + OVERHEAD + UNIT - 1) / UNIT * UNIT);
}
