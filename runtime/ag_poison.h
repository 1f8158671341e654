/* ag_poison: fills memory of the arena that holds no value now. `autodiff-gen build --poison` writes calls of
 * it: when a function begins, for the whole arena, and after each step for what no later step may read. A
 * value that is read too late, or that shares memory with another one, is then wrong in every run.
 *
 * The pattern is a signalling NaN as float, 2141562277 as int32_t, and -91, -91, -91, 127 as bytes. */
#ifndef AG_POISON_H
#define AG_POISON_H

#include <stdint.h>
#include <string.h>

static inline void ag_poison(void *memory, int32_t words) {
    const uint32_t pattern = 0x7fa5a5a5u;
    unsigned char *to = (unsigned char *)memory;
    for (; words > 0; words--, to += sizeof pattern) {
        memcpy(to, &pattern, sizeof pattern);
    }
}

#endif
