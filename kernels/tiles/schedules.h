/* The schedule of a backend: how the loops of this folder are blocked for its registers. Each backend's
 * folder has one, schedule.h, an enum of all of these constants. The compiler resolves branches on a
 * constant, and checks the code that a backend does not need all the same:
 *
 *     AG_REGISTERS        vectors that the registers hold
 *     LANES               floats of a vector
 *
 * Products and convolutions (microkernel.h)
 *
 *     AG_TILE_M           rows of a tile, ...
 *     AG_TILE_N           ... and columns, a multiple of LANES
 *     AG_GENERAL_TILES    1: a call of a micro-kernel computes any number of tiles, partial ones included,
 *                         and sums over a third axis, as masked vectors do; then no tile overlaps its
 *                         neighbour, and no call is of scalar code
 *     AG_TILE_RUNS        1: a call computes all tiles side by side that have the same rows (ag_tile_run),
 *                         with `tn` of any even number of columns
 *     AG_SINGLE_PIXELS    1: gemv and gemv_t compute pixels that do not fill a tile, where that takes fewer
 *                         products
 *     AG_NARROW_TILES     1: the backend has an instance with narrower tiles, whose kernels have `_small` in
 *                         their names, for matrices that are narrower than a tile
 *     AG_PACKED_K         gemm packs rows of B of at most so many elements first: they become columns
 *     AG_PANEL_COLUMNS    columns of a panel of packed weights (ag_pack_columns), ...
 *     AG_PANEL_PIXELS     ... which pays from so many pixels on
 *     AG_STACK_PANEL      floats of the stack that a convolution packs panels of AG_TILE_N columns in, or 0
 *     AG_SCRATCH_PANEL    1: convolution and its input gradient pack panels in scratch memory, if they have
 *                         some, and the micro-kernel `np` multiplies any number of pixels by them
 *     AG_BLOCK_COLUMNS    channels of weights that gradients_s8.c converts at a time
 *
 * Sums of windows
 *
 *     AG_CHANNEL_TILE     channels of a depthwise tile
 *     DEPTHWISE_RESULTS   results of the depthwise micro-kernel
 *     AG_STACK_TILES      tiles of channels that conv2d_by_channels.c keeps on the stack: more of them take
 *                         fewer calls of the micro-kernel
 *     AG_POOL_SUMS        sums of a window that conv2d_pool_dw.c computes at a time, ...
 *     AG_POOL_LIST        ... and windows that it lists: 96 and 53 take less than 1 KB of stack
 *
 * Vectors (vectors.h)
 *
 *     RUN                 vectors that one step along a row processes
 *     AG_SHORT_RUN        vectors of the runs at the end of a row, where LANES is 1, or 0
 *     AG_GEMV_RUN         vectors of a run of gemv; with AG_SHORT_RUN it loads two runs at a time
 *     PART                the end of a row, shorter than a vector, in steps of so many floats: LANES where
 *                         there are masks, otherwise 1
 *     SUMS                vectors of sums that the registers hold beside their operands
 *     SUM_ROWS            rows of vectors that are added up at a time; 0: as many as SUMS holds
 *     COLUMN_VECTORS      vectors of columns of column_sums
 *     GEMV_ROWS           rows of gemv
 *     FINISH_VECTORS      vectors of columns of an epilogue
 *     AG_PARTIAL_BLOCKS   1: two to four vectors of columns at a time, the last one partial
 *     AG_ALL_MODES        1: ger has separate code for beta 0, 1 and others */
#ifndef AG_TILES_SCHEDULES_H
#define AG_TILES_SCHEDULES_H

#include "schedule.h"
#include "tiles/symbols.h"

/* If `holds` is false, the name of an array of negative size states the error and the schedule. */
#define AG_CHECK_SCHEDULE(wrong, holds)                                                                      \
    typedef char AG_JOIN(wrong##_in_schedule_of, AG_BACKEND)[(holds) ? 1 : -1]

AG_CHECK_SCHEDULE(AG_TILE_N_is_no_multiple_of_LANES, AG_TILE_N % LANES == 0);
AG_CHECK_SCHEDULE(sums_of_a_tile_a_row_of_B_and_a_factor_take_more_than_AG_REGISTERS,
                  (AG_TILE_M + 1) * (AG_TILE_N / LANES) + 1 <= AG_REGISTERS);
AG_CHECK_SCHEDULE(AG_GENERAL_TILES_has_AG_TILE_RUNS_or_AG_SINGLE_PIXELS,
                  !AG_GENERAL_TILES || !(AG_TILE_RUNS || AG_SINGLE_PIXELS));
AG_CHECK_SCHEDULE(AG_STACK_PANEL_needs_AG_GENERAL_TILES, AG_STACK_PANEL == 0 || AG_GENERAL_TILES);
AG_CHECK_SCHEDULE(AG_SCRATCH_PANEL_needs_AG_TILE_RUNS, !AG_SCRATCH_PANEL || AG_TILE_RUNS);
AG_CHECK_SCHEDULE(AG_PACKED_K_has_AG_GENERAL_TILES, AG_PACKED_K == 0 || !AG_GENERAL_TILES);
AG_CHECK_SCHEDULE(AG_PANEL_COLUMNS_is_not_AG_TILE_N_as_AG_STACK_PANEL_and_AG_PACKED_K_need,
                  (AG_STACK_PANEL == 0 && AG_PACKED_K == 0) || AG_PANEL_COLUMNS == AG_TILE_N);
AG_CHECK_SCHEDULE(AG_PANEL_COLUMNS_is_no_multiple_of_LANES, AG_PANEL_COLUMNS % LANES == 0);
AG_CHECK_SCHEDULE(AG_CHANNEL_TILE_is_no_multiple_of_LANES, AG_CHANNEL_TILE % LANES == 0);
AG_CHECK_SCHEDULE(DEPTHWISE_RESULTS_and_weights_take_more_than_AG_REGISTERS,
                  AG_GENERAL_TILES || (DEPTHWISE_RESULTS + 1) * (AG_CHANNEL_TILE / LANES) <= AG_REGISTERS);
AG_CHECK_SCHEDULE(PART_is_neither_1_nor_LANES, PART == 1 || PART == LANES);
AG_CHECK_SCHEDULE(AG_SHORT_RUN_needs_LANES_of_1_and_a_RUN_of_8_and_of_GEMV_ROWS,
                  AG_SHORT_RUN == 0 || (LANES == 1 && RUN >= 8 && RUN >= GEMV_ROWS));
AG_CHECK_SCHEDULE(SUMS_take_all_AG_REGISTERS, SUMS < AG_REGISTERS);
AG_CHECK_SCHEDULE(RUN_or_COLUMN_VECTORS_are_more_than_SUMS, RUN <= SUMS && COLUMN_VECTORS <= SUMS);
AG_CHECK_SCHEDULE(GEMV_ROWS_is_no_multiple_of_4_below_AG_REGISTERS,
                  GEMV_ROWS % 4 == 0 && GEMV_ROWS < AG_REGISTERS);

#endif
