/* Weight gradient of a pooled convolution: a window at a time, and longer lists. */
#define AG_POOL_SUMS 1024
#define AG_POOL_LIST 1024
#include "tiles/conv2d_pool_dw.c" /* NOLINT(bugprone-suspicious-include) */
