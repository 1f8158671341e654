#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_TILE(name) ag_tile_##name##_fast
