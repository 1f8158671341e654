/* For any number of channels: the table of tiles/ has those of at least 8. */
#include "tiles/depthwise2d.c" /* NOLINT(bugprone-suspicious-include) */
