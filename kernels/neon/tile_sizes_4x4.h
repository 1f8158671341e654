/* The tile for matrices narrower than that of tile_sizes.h. */
#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_MICROKERNEL(name) ag_microkernel_##name##_4x4_neon
