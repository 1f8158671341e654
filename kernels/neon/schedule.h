/* The schedule of Cortex-A: AArch64 has 32 registers of four floats, AArch32 16 (tiles/schedules.h). */
#ifndef AG_NEON_SCHEDULE_H
#define AG_NEON_SCHEDULE_H

#ifdef __aarch64__
enum { AG_NEON_REGISTERS = 32 };
#else
enum { AG_NEON_REGISTERS = 16 };
#endif
#ifdef AG_NEON_4X4 /* narrow.h */
enum { AG_SMALL = 1, AG_NEON_COLUMNS = 4 };
#else
enum { AG_SMALL = 0, AG_NEON_COLUMNS = AG_NEON_REGISTERS / 2 };
#endif

enum {
    AG_REGISTERS = AG_NEON_REGISTERS,
    LANES = 4,

    AG_TILE_M = 4,
    AG_TILE_N = AG_NEON_COLUMNS,
    AG_GENERAL_TILES = 0,
    AG_TILE_RUNS = 0,
    AG_SINGLE_PIXELS = 0,
    AG_NARROW_TILES = !AG_SMALL,
    AG_PACKED_K = AG_SMALL ? 0 : 64, /* 4 KB of stack in AArch64, 2 KB in AArch32 */
    AG_PANEL_COLUMNS = AG_TILE_N,
    AG_PANEL_PIXELS = 32,
    AG_STACK_PANEL = 0,
    AG_SCRATCH_PANEL = 0,
    AG_BLOCK_COLUMNS = AG_TILE_N,

    AG_CHANNEL_TILE = 8,
    DEPTHWISE_RESULTS = 4,
    AG_STACK_TILES = 25,
    AG_POOL_SUMS = 256,
    AG_POOL_LIST = 192, /* 3 KB of stack in AArch64 */

    RUN = 4,
    AG_SHORT_RUN = 0,
    AG_GEMV_RUN = RUN,
    PART = 1,
    SUMS = 8,
    SUM_ROWS = 4,
    COLUMN_VECTORS = 4,
    GEMV_ROWS = AG_REGISTERS / 4,
    FINISH_VECTORS = 4,
    AG_PARTIAL_BLOCKS = 0,
    AG_ALL_MODES = 0
};

#endif
