/* Portable micro-kernels for tiles/microkernel.h and axpy_rows.h, so that sanitizers check every access of
 * the code in kernels/tiles. */
#define AG_TILE_M 4
#define AG_TILE_N 4
