/* Shared by the programs of the compiler differential: memory with a poison pattern, and checksums of what is
 * written. */
#ifndef DIFFERENTIAL_H
#define DIFFERENTIAL_H

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_loops.h"

#include <string.h>

/* NaN, and a large number: an element that is not written differs between them. */
static const uint32_t patterns[2] = {0xffffffffu, 0x7bdeadbeu};
static uint32_t sum;

static AG_NOINLINE void poison(void *memory, uint32_t bytes, uint32_t pattern) {
    uint8_t *p = (uint8_t *)memory;
    for (uint32_t i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(pattern >> (i % 4u * 8u));
    }
}

static AG_NOINLINE void add(const void *data, uint32_t bytes) {
    sum = ag_crc32(sum, data, bytes);
}

static AG_NOINLINE void print_sum(const char *name, uint32_t status) {
    ag_print(name);
    ag_print(" ");
    ag_print_u32(status, 0);
    ag_print(" ");
    ag_print_hex(sum);
    ag_print("\n");
}

#endif
