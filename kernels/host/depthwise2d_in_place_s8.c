/* ag_depthwise2d_in_place_s8_host. */
#define AG_IN_PLACE
#include "depthwise2d_s8.c" /* NOLINT(bugprone-suspicious-include) */
