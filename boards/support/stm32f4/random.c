/* The random number generator of the STM32F4: ST RM0090 rev 19, chapter 24. Chips of the family without one,
 * such as the F446, do not keep its clock enabled; nor does QEMU's, so that these registers are not touched
 * there. */
#include <stdbool.h>
#include <string.h>

#if defined(AG_REGISTER_MODEL) /* the test's registers */
#include AG_REGISTER_MODEL
#else
#include "ag_machine.h"

static uint32_t get(uint32_t address) {
    return AG_REGISTER(address);
}

static void set(uint32_t address, uint32_t value) {
    AG_REGISTER(address) = value;
}
#endif

#define RCC_AHB2ENR 0x40023834u
#define RNG_CR 0x50060800u
#define RNG_SR 0x50060804u
#define RNG_DR 0x50060808u

#define CLOCK (1u << 6)
#define ENABLE (1u << 2)
#define READY 1u
#define ERRORS 0x66u /* a wrong clock, a bad seed: now, or since these bits were cleared */

#ifndef WAIT
#define WAIT 100000 /* iterations of a polling loop; a word takes 40 periods of 48 MHz */
#endif

static bool draw(uint32_t *word) {
    for (int32_t i = 0; i < WAIT; i++) {
        const uint32_t status = get(RNG_SR);
        if ((status & ERRORS) != 0) {
            return false;
        }
        if ((status & READY) != 0) {
            *word = get(RNG_DR);
            return true;
        }
    }
    return false;
}

/* The first word is not used, and each is compared with the one before, as 24.3.1 requires. */
int ag_machine_random(void *data, uint32_t bytes) {
    uint32_t before, word;
    set(RCC_AHB2ENR, get(RCC_AHB2ENR) | CLOCK);
    if ((get(RCC_AHB2ENR) & CLOCK) == 0) {
        return AG_NO_GENERATOR;
    }
    set(RNG_CR, 0);
    set(RNG_SR, 0); /* of errors before */
    set(RNG_CR, ENABLE);
    if (!draw(&before)) {
        return -1;
    }
    for (uint32_t at = 0, count; at < bytes; at += count, before = word) {
        if (!draw(&word) || word == before) {
            return -1;
        }
        count = bytes - at < sizeof word ? bytes - at : (uint32_t)sizeof word;
        memcpy((uint8_t *)data + at, &word, count);
    }
    return 0;
}
