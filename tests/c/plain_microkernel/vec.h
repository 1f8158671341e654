/* Portable micro-kernels for tiles/microkernel.h, over vectors of one float, so that sanitizers check every
 * access of the code in kernels/tiles. */
#include "fast/vec.h"
