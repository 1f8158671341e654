/* A backend of blocks in plain C: what tiles/tile.h and the gradients' rows ask for, so that sanitizers see
 * every access of the code that is written once over them. */
#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_MICROKERNEL(name) plain_microkernel_##name
