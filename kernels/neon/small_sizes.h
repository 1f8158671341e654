/* The block for what is narrower than that of tile_sizes.h. */
#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_TILE(name) ag_small_tile_##name##_neon
