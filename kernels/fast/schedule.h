/* The schedule of scalar cores with 32 registers of a float (tiles/schedules.h). */
#ifndef AG_FAST_SCHEDULE_H
#define AG_FAST_SCHEDULE_H

enum {
    AG_REGISTERS = 32,
    LANES = 1,

    AG_TILE_M = 4,
    AG_TILE_N = 4,
    AG_GENERAL_TILES = 0,
    AG_TILE_RUNS = 0,
    AG_SINGLE_PIXELS = 0,
    AG_NARROW_TILES = 0,
    AG_PACKED_K = 0,
    AG_PANEL_COLUMNS = AG_TILE_N,
    AG_PANEL_PIXELS = 32,
    AG_STACK_PANEL = 0,
    AG_SCRATCH_PANEL = 0,
    AG_BLOCK_COLUMNS = 8,

    AG_CHANNEL_TILE = 8,
    DEPTHWISE_RESULTS = 1,
    AG_STACK_TILES = 11,
    AG_POOL_SUMS = 96,
    AG_POOL_LIST = 53,

    RUN = 4,
    AG_SHORT_RUN = 0,
    AG_GEMV_RUN = RUN,
    PART = 1,
    SUMS = 8,
    SUM_ROWS = 1,
    COLUMN_VECTORS = 8,
    GEMV_ROWS = 4,
    FINISH_VECTORS = 4,
    AG_PARTIAL_BLOCKS = 0,
    AG_ALL_MODES = 0
};

#endif
