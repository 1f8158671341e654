/* A model of the STM32F4's flash controller (ST RM0090 rev 19, chapter 3), and the driver running on it.
 * Every access that the manual forbids ends the program with a message. */
#include "ag_flash.h"
#include "stm32f4_registers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR_BYTES = 131072, SECTORS = 2, FIRST_SECTOR = 10 };

static uint32_t flash_word[SECTORS * SECTOR_BYTES / 4];
static uint32_t acr = 0x705u, sr, cr = 1u << 31, keys, busy;
static uint32_t erasures, programmed;
static bool stuck, broken, semihosting;

static void fail(const char *what) {
    printf("wrong: %s\n", what);
    exit(1);
}

bool ag_semihosting_present(void) {
    return semihosting;
}

int ag_flash_file_for(ag_flash *flash, uint32_t state_bytes) {
    flash->slots = state_bytes; /* shows that the file was opened */
    return AG_STORE_OK;
}

uint32_t get(uint32_t address) {
    if (address == 0x40023c00u) {
        return acr;
    }
    if (address == 0x40023c0cu) {
        if (busy > 0 && !stuck) {
            busy--;
        }
        return sr | (busy > 0 ? 1u << 16 : 0u);
    }
    if (address == 0x40023c10u) {
        return cr;
    }
    if (address < STORE_ORIGIN || address - STORE_ORIGIN >= sizeof flash_word || address % 4 != 0) {
        fail("a read outside the sectors");
    }
    if (busy > 0) {
        fail("a read while the controller is busy");
    }
    return flash_word[(address - STORE_ORIGIN) / 4];
}

static void set_control(uint32_t value) {
    if (cr & 1u << 31) {
        fail("CR is written while it is locked");
    }
    if (busy > 0) {
        fail("CR is written while the controller is busy");
    }
    cr = value & ~(1u << 16);
    if (value & 1u << 16) {
        const uint32_t sector = value >> 3 & 15u;
        if ((value & 3u) != 2u || (value >> 8 & 3u) != 2u) {
            fail("START without exactly SER and x32");
        }
        if (sector < FIRST_SECTOR || sector >= FIRST_SECTOR + SECTORS) {
            fail("another sector is erased");
        }
        memset(flash_word + (sector - FIRST_SECTOR) * SECTOR_BYTES / 4, 0xff, SECTOR_BYTES);
        erasures++;
        busy = 1000;
        sr |= 1u;
    }
}

void set(uint32_t address, uint32_t value) {
    if (address == 0x40023c00u) {
        if ((value & 1u << 12) && (value & 1u << 10)) {
            fail("the data cache is reset while it is on");
        }
        acr = value;
    } else if (address == 0x40023c04u) {
        keys = keys == 0 && value == 0x45670123u ? 1 : keys == 1 && value == 0xcdef89abu ? 2 : 3;
        if (keys == 3) {
            fail("wrong keys lock the controller until the next reset");
        }
        if (keys == 2) {
            cr &= ~(1u << 31);
        }
    } else if (address == 0x40023c0cu) {
        sr &= ~value;
    } else if (address == 0x40023c10u) {
        set_control(value);
        keys = cr & 1u << 31 ? 0 : keys;
    } else {
        if (address < STORE_ORIGIN || address - STORE_ORIGIN >= sizeof flash_word || address % 4 != 0) {
            fail("a write outside the sectors");
        }
        if ((cr & 3u) != 1u || (cr >> 8 & 3u) != 2u || cr & 1u << 31 || busy > 0) {
            fail("programming without PG and x32, or while busy");
        }
        if (flash_word[(address - STORE_ORIGIN) / 4] != 0xffffffffu) {
            fail("a word is programmed twice");
        }
        flash_word[(address - STORE_ORIGIN) / 4] = broken ? value & ~1u : value;
        programmed++;
        busy = 20;
        sr |= broken ? 1u << 7 : 1u;
    }
}

static int save(const void *memory, ag_write_fn *write, void *ctx) {
    return write(ctx, 0, memory, 40000);
}

static int load(void *memory, ag_read_fn *read, void *ctx) {
    return read(ctx, 0, memory, 40000);
}

static void expect(bool good, const char *what) {
    if (!good) {
        fail(what);
    }
}

int main(void) {
    static uint8_t state[40000], back[40000];
    ag_flash f;
    ag_checkpoint c = {1, 2, 0, 3, 0};
    memset(flash_word, 0, sizeof flash_word); /* as an earlier program may have left it */
    expect(ag_flash_open(&f, 0) == 0 && f.slots == 2 && f.slot_bytes == SECTOR_BYTES, "open");
    sr = 1u << 6; /* and its last operation failed */
    for (uint32_t i = 0; i < 10; i++) {
        for (uint32_t k = 0; k < sizeof state; k++) {
            state[k] = (uint8_t)(k * (i + 1) >> 3);
        }
        expect(ag_store_save(&f, &c, save, state) == AG_STORE_OK, "save");
        expect(ag_store_load(&f, &c, load, back) == AG_STORE_OK && memcmp(state, back, sizeof back) == 0,
               "load");
    }
    expect(erasures == 4 && programmed == 10 * (10000 + 10) + 4 * 4,
           "as many operations as records and slots");
    expect(cr == 1u << 31, "locked at the end");
    expect((acr & 1u << 10) && !(acr & 1u << 12), "the cache is on at the end");
    broken = true;
    expect(ag_store_save(&f, &c, save, state) == AG_STORE_ERR_WORN, "programming fails");
    broken = false;
    expect(ag_store_load(&f, &c, load, back) == AG_STORE_OK && memcmp(state, back, sizeof back) == 0,
           "it stays");
    expect(f.read(NULL, 2 * SECTOR_BYTES, back, 1) != 0, "a read past the end");
    expect(f.program(NULL, 2, state, 4) != 0 && f.program(NULL, 4, state, 2) != 0, "not whole words");
    expect(f.erase(NULL, 4) != 0, "not a slot's start");
    stuck = true;
    busy = 1;
    expect(f.erase(NULL, 0) != 0, "a controller that never ends");
    busy = 0;
    expect(f.erase(NULL, 0) != 0, "one whose operation never ends");
    semihosting = true;
    expect(ag_flash_open(&f, 77) == 0 && f.slots == 77, "where files are served, a file");
    printf("programmed, erased, rejected as the manual says\n");
    return 0;
}
