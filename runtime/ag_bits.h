/* Masks of a bit for each element: element i is bit i % 8 of byte i / 8. */
#ifndef AG_BITS_H
#define AG_BITS_H

#include <stdint.h>

/* The bit of element i in its byte: 0 where the element is 0. */
static inline int32_t ag_bit(int32_t element, int32_t i) {
    return (int32_t)(element != 0) << (i & 7);
}

/* Whether the element is not 0, from the byte of its bit. */
static inline int32_t ag_has_bit(int32_t byte, int32_t i) {
    return (byte >> (i & 7)) & 1;
}

#endif
