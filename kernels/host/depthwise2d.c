/* For any number of channels: the table of tiles/ requires at least 8. */
#include "tiles/depthwise2d.c" /* NOLINT(bugprone-suspicious-include) */
