/* Gradients of convolutions of which one operand is quantised, in blocks of a tile's columns; fewer channels
 * are those of small tiles. */
#include "vec.h"

#define AG_BLOCK_COLUMNS AG_TILE_N
#define AG_BLOCK_DX(channels) ((channels) < AG_TILE_N ? ag_conv2d_dx_f32_small_neon : ag_conv2d_dx_f32_neon)

#include "ag_kernels.h"

ag_conv2d_dx_f32_fn ag_conv2d_dx_f32_small_neon;

#include "tiles/gradients_s8.c"
