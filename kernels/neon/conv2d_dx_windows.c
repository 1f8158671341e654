/* By the tiles of 4 x 4. */
#include "narrow.h"
#include "tiles/conv2d_dx_windows.c"
