/* Sizes of tiles whose sums fit the registers. */
#ifndef AG_ARMV7EM_VEC_H
#define AG_ARMV7EM_VEC_H

#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_CHANNEL_TILE 8
#define AG_SINGLE_PIXELS 1
#define AG_TILE_RUNS 1
#define AG_AXPY_ROWS_ASSEMBLY 1

#endif
