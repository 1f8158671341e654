/* Gradients of convolutions of which one operand is quantised, in blocks of 16 channels. */
#define AG_BLOCK_COLUMNS 16

#include "tiles/gradients_s8.c"
