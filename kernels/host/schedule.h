/* The schedule of vectors as wide as the compiler may use: AVX-512 has 32 registers, AVX and SSE 16
 * (tiles/schedules.h). */
#ifndef AG_HOST_SCHEDULE_H
#define AG_HOST_SCHEDULE_H

#if defined __AVX512F__
enum { AG_HOST_LANES = 16, AG_HOST_ROWS = 8 };
#elif defined __AVX__
enum { AG_HOST_LANES = 8, AG_HOST_ROWS = 6 };
#else
enum { AG_HOST_LANES = 4, AG_HOST_ROWS = 4 };
#endif
#ifndef AG_PANEL_FLOATS
#define AG_PANEL_FLOATS 16384 /* 64 KB */
#define AG_PANEL_FROM 32
#endif

enum {
    AG_REGISTERS = AG_HOST_LANES == 16 ? 32 : 16,
    LANES = AG_HOST_LANES,

    AG_TILE_M = AG_HOST_ROWS,
    AG_TILE_N = 2 * LANES,
    AG_GENERAL_TILES = 1,
    AG_TILE_RUNS = 0,
    AG_SINGLE_PIXELS = 0,
    AG_NARROW_TILES = 0,
    AG_PACKED_K = 0,
    AG_PANEL_COLUMNS = AG_TILE_N,
    AG_PANEL_PIXELS = AG_PANEL_FROM,
    AG_STACK_PANEL = AG_PANEL_FLOATS,
    AG_SCRATCH_PANEL = 0,
    AG_BLOCK_COLUMNS = 8,

    AG_CHANNEL_TILE = 4 * LANES,
    DEPTHWISE_RESULTS = 8,
    AG_STACK_TILES = 25,
    AG_POOL_SUMS = 1024,
    AG_POOL_LIST = 1024,

    RUN = 1,
    AG_SHORT_RUN = 0,
    AG_GEMV_RUN = RUN,
    PART = LANES,
    SUMS = 8,
    SUM_ROWS = 0,
    COLUMN_VECTORS = 4,
    GEMV_ROWS = 8,
    FINISH_VECTORS = 4,
    AG_PARTIAL_BLOCKS = 1,
    AG_ALL_MODES = 1
};

#endif
