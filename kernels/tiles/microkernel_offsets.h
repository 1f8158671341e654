/* Offsets of the fields of ag_tile (tiles/microkernel.h), for assembly on cores with 32-bit pointers. */
#ifndef AG_MICROKERNEL_OFFSETS_H
#define AG_MICROKERNEL_OFFSETS_H

#include "tiles/microkernel.h"

#include <stddef.h>

#define A "0"
#define B "16"
#define A_STEP "32"
#define B_STEP "36"
#define K "40"
#define K_RUNS "44"
#define A_SKIP "48"
#define B_SKIP "52"
#define C "56"
#define C_STEP "60"
#define ALPHA "64"
#define BETA "68"
#define RUN_COLUMNS "72" /* with AG_TILE_RUNS */
#define B_NEXT "76"      /* with AG_TILE_RUNS */

typedef char ag_tile_offsets_match[offsetof(ag_tile, b) == 16 && offsetof(ag_tile, a_step) == 32 &&
                                           offsetof(ag_tile, k) == 40 && offsetof(ag_tile, a_skip) == 48 &&
                                           offsetof(ag_tile, c) == 56 && offsetof(ag_tile, beta) == 68 &&
                                           offsetof(ag_tile, run) == 72 && offsetof(ag_tile, b_next) == 76
                                       ? 1
                                       : -1];

#endif
