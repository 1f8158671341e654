/* Where a pass over the channels for each output of the groups takes less than the tiles of each group. The
 * table of tiles/ has the condition for cores with vectors of 4 floats or less. */
#include "tiles/conv2d_by_channels.c" /* NOLINT(bugprone-suspicious-include) */
