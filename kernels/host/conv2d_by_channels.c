/* A pass over the channels for each output of the groups, where that takes less than the tiles of each group.
 * The conditions in tiles/ are for vectors of 4 floats or less. */
#include "tiles/conv2d_by_channels.c" /* NOLINT(bugprone-suspicious-include) */
