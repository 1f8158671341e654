/* Taps of eight channels of a depthwise convolution of 8-bit integers (depthwise2d_s8.c). */
#ifndef AG_TILES_TAPS_S8_H
#define AG_TILES_TAPS_S8_H

#include "tiles/symbols.h"

#include <stdint.h>
#include <string.h>

enum { AG_CHANNELS = 8 };

typedef struct ag_tap_s8 {
    int32_t offset;
    int8_t w[AG_CHANNELS];
} ag_tap_s8;

ALWAYS_INLINE void ag_weights(ag_tap_s8 *tap, const int8_t *w) {
    memcpy(tap->w, w, sizeof tap->w);
}

#endif
