/* The schedule of Cortex-M4F, M7 and M33: 32 registers of a float (tiles/schedules.h). */
#ifndef AG_ARMV7EM_SCHEDULE_H
#define AG_ARMV7EM_SCHEDULE_H

#ifdef __OPTIMIZE_SIZE__
enum { AG_MOST_ROWS = 4 };
#else
enum { AG_MOST_ROWS = 8 };
#endif

enum {
    AG_REGISTERS = 32,
    LANES = 1,

    AG_TILE_M = 4,
    AG_TILE_N = 4,
    AG_GENERAL_TILES = 0,
    AG_TILE_RUNS = 1,
    AG_SINGLE_PIXELS = 1,
    AG_NARROW_TILES = 0,
    AG_PACKED_K = 0,
    AG_PANEL_COLUMNS = 8,
    AG_PANEL_PIXELS = 32,
    AG_STACK_PANEL = 0,
    AG_SCRATCH_PANEL = 1,
    AG_BLOCK_COLUMNS = 8,

    AG_CHANNEL_TILE = 8,
    DEPTHWISE_RESULTS = 1,
    AG_STACK_TILES = 11,
    AG_POOL_SUMS = 96,
    AG_POOL_LIST = 53,

    RUN = 12,
    AG_SHORT_RUN = 4,
    AG_GEMV_RUN = 8,
    PART = 1,
    SUMS = RUN,
    SUM_ROWS = 1,
    COLUMN_VECTORS = 8,
    GEMV_ROWS = AG_MOST_ROWS,
    FINISH_VECTORS = 4,
    AG_PARTIAL_BLOCKS = 0,
    AG_ALL_MODES = 0
};

#endif
