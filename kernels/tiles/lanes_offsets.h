/* Offsets into ag_lanes for assembly on cores with pointers of 32 bits. */
#ifndef AG_LANES_OFFSETS_H
#define AG_LANES_OFFSETS_H

#include "tiles/lanes.h"

#include <stddef.h>

#define A "0"
#define B "4"
#define A_STEP "8"
#define K "16"
#define SEGMENTS "20"
#define A_SKIP "24"
#define START "32"
#define C "36"
#define COUNT "40"
#define A_NEXT "44"
#define C_NEXT "48"

typedef char
    ag_lanes_is_as_assembled[offsetof(ag_lanes, b) == 4 && offsetof(ag_lanes, a_step) == 8 &&
                                     offsetof(ag_lanes, k) == 16 && offsetof(ag_lanes, a_skip) == 24 &&
                                     offsetof(ag_lanes, start) == 32 && offsetof(ag_lanes, count) == 40 &&
                                     offsetof(ag_lanes, c_next) == 48
                                 ? 1
                                 : -1];

#endif
