#include "ag_flash_ram.h"

#include "ag_rng.h"

#include <stdbool.h>
#include <string.h>

enum { NONE, PARTIAL, COMPLETE };

/* How much of the next operation is executed. */
static int power(ag_flash_ram *r) {
    if (r->cut_after == 0 || r->operations < r->cut_after) {
        r->operations++;
        return r->cut_after != 0 && r->operations == r->cut_after && r->torn != 0 ? PARTIAL : COMPLETE;
    }
    return NONE;
}

static bool is_inside(const ag_flash_ram *r, uint32_t address, uint32_t bytes) {
    const uint32_t all = r->slots * r->slot_bytes;
    return address <= all && bytes <= all - address;
}

static int read_ram(void *ctx, uint32_t address, void *data, uint32_t bytes) {
    const ag_flash_ram *r = (const ag_flash_ram *)ctx;
    if (!is_inside(r, address, bytes)) {
        return -1;
    }
    memcpy(data, (const uint8_t *)r->word + address, bytes);
    return 0;
}

static int program_ram(void *ctx, uint32_t address, const void *data, uint32_t bytes) {
    ag_flash_ram *r = (ag_flash_ram *)ctx;
    if (!is_inside(r, address, bytes) || address % 4 != 0 || bytes % 4 != 0) {
        return -1;
    }
    for (uint32_t offset = 0; offset < bytes; offset += 4) {
        const uint32_t i = (address + offset) / 4;
        uint32_t word;
        memcpy(&word, (const uint8_t *)data + offset, 4);
        if (i >= r->worn_from && i < r->worn_to) {
            word &= ~1u;
        }
        switch (power(r)) {
        case NONE:
            return -1;
        case PARTIAL: /* some of the bits have changed */
            r->word[i] &= word | ag_rand_u32(r->torn, 1, i);
            return -1;
        default:
            r->word[i] &= word;
        }
    }
    return 0;
}

static int erase_ram(void *ctx, uint32_t address) {
    ag_flash_ram *r = (ag_flash_ram *)ctx;
    if (!is_inside(r, address, r->slot_bytes) || address % r->slot_bytes != 0) {
        return -1;
    }
    const int extent = power(r);
    if (extent == NONE) {
        return -1;
    }
    const uint32_t words = r->slot_bytes / 4, first = address / 4;
    for (uint32_t i = first; i < first + words; i++) {
        if (extent == COMPLETE) {
            r->word[i] = 0xffffffffu;
        } else if (ag_rand_u32(r->torn, 2, i) & 1u) { /* some words are erased, some bits of others */
            r->word[i] |= ag_rand_u32(r->torn, 3, i) & 2u ? 0xffffffffu : ag_rand_u32(r->torn, 4, i);
        }
    }
    return extent == COMPLETE ? 0 : -1;
}

ag_flash ag_flash_ram_open(ag_flash_ram *ram) {
    const ag_flash f = {read_ram, program_ram, erase_ram, ram, ram->slots, ram->slot_bytes};
    return f;
}
