/* A model of the STM32F4's random number generator (ST RM0090 rev 19, chapter 24), and the driver on it. */
#include "stm32f4_registers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ag_machine_random(void *data, uint32_t bytes);

static uint32_t clocks, control, next, wait, errors;
static bool exists, stuck, repeats, lasts;

uint32_t get(uint32_t address) {
    switch (address) {
    case 0x40023834u:
        return clocks;
    case 0x50060804u:
        return errors | (!stuck && wait-- == 0 ? 1u : 0u);
    case 0x50060808u:
        wait = 3;
        next += repeats ? 0 : 0x01010101u;
        return next;
    default:
        printf("wrong: register %x is read\n", (unsigned)address);
        exit(1);
    }
}

void set(uint32_t address, uint32_t value) {
    if (address == 0x40023834u) {
        clocks = exists ? value : 0;
    } else if (address == 0x50060800u && (clocks & 1u << 6) != 0) {
        control = value;
    } else if (address == 0x50060804u && (clocks & 1u << 6) != 0) {
        errors &= lasts ? ~0u : value;
    } else {
        printf("wrong: register %x is written\n", (unsigned)address);
        exit(1);
    }
}

static int draw(uint8_t *bytes, uint32_t count) {
    memset(bytes, 0, 12);
    wait = 3;
    next = 0;
    return ag_machine_random(bytes, count);
}

int main(void) {
    static const uint8_t expected[12] = {2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 0, 0};
    uint8_t bytes[12];
    bool right = draw(bytes, 10) == AG_NO_GENERATOR;
    exists = true;
    right &= draw(bytes, 10) == 0 && memcmp(bytes, expected, sizeof bytes) == 0 && (control & 4u) != 0;
    repeats = true;
    right &= draw(bytes, 10) == -1;
    repeats = false;
    lasts = true;
    for (uint32_t bit = 0; bit < 4; bit++) {
        static const uint32_t error[4] = {1u << 1, 1u << 2, 1u << 5, 1u << 6};
        errors = error[bit];
        right &= draw(bytes, 10) == -1;
    }
    lasts = false; /* errors that are over */
    errors = 0x60;
    right &= draw(bytes, 10) == 0;
    errors = 0;
    stuck = true;
    right &= draw(bytes, 10) == -1;
    puts(right ? "drawn and rejected as the manual says" : "wrong");
    return right ? 0 : 1;
}
