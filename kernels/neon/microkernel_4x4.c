/* For matrices narrower than the tiles of vec.h. */
#include "narrow.h"
#include "tiles/microkernel.c"
