/* Offsets of the fields of ag_depthwise_tile (tiles/depthwise_microkernel.h), for assembly on cores with
 * 32-bit pointers. */
#ifndef AG_DEPTHWISE_MICROKERNEL_OFFSETS_H
#define AG_DEPTHWISE_MICROKERNEL_OFFSETS_H

#include "tiles/depthwise_microkernel.h"

#include <stddef.h>

#define A "0"
#define B "4"
#define A_STEP "8"
#define K "16"
#define K_RUNS "20"
#define A_SKIP "24"
#define INIT "32"
#define C "36"
#define COUNT "40"
#define A_NEXT "44"
#define C_NEXT "48"

typedef char ag_depthwise_tile_offsets_match
    [offsetof(ag_depthwise_tile, b) == 4 && offsetof(ag_depthwise_tile, a_step) == 8 &&
             offsetof(ag_depthwise_tile, k) == 16 && offsetof(ag_depthwise_tile, a_skip) == 24 &&
             offsetof(ag_depthwise_tile, init) == 32 && offsetof(ag_depthwise_tile, count) == 40 &&
             offsetof(ag_depthwise_tile, c_next) == 48
         ? 1
         : -1];

#endif
