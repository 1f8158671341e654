/* Gradients of convolutions of which one operand is quantised, in blocks of a tile's columns; fewer channels
 * are those of small tiles. */
#include "tiles/conv2d_group.h"

#define AG_BLOCK_COLUMNS AG_TILE_N
#define AG_BLOCK_DX(channels)                                                                                \
    ((channels) < AG_TILE_N ? AG_OF_GROUP(ag_conv2d_dx_f32_small_neon) : AG_OF_GROUP(ag_conv2d_dx_f32_neon))

ag_conv2d_dx_group_fn AG_OF_GROUP(ag_conv2d_dx_f32_small_neon);

#include "tiles/gradients_s8.c"
