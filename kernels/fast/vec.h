/* For scalar cores: sizes of tiles whose sums fit the registers, and vectors of one float, which the compiler
 * keeps in a register. */
#ifndef AG_FAST_VEC_H
#define AG_FAST_VEC_H

#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_CHANNEL_TILE 8
#define AG_MOVING_POINTERS 1

enum {
    LANES = 1,
    RUN = 4,
    PART = 1,
    SUMS = 8,
    COLUMN_VECTORS = 8,
    GEMV_ROWS = 4,
    DEPTHWISE_RESULTS = 1,
    FINISH_VECTORS = 4
};
#define SUM_ROWS(vectors) 1

#include "tiles/floats.h"

#endif
