/* A group of a convolution as blocks (tile.h) see it. Where the elements of a window's row follow one another
 * in x, each row is a segment of a block's sum; otherwise windows are packed first (packing.h). */
#ifndef AG_TILES_CONV2D_GROUP_H
#define AG_TILES_CONV2D_GROUP_H

#include "ag_shapes.h"
#include "tiles/microkernel.h"

#include <stdbool.h>

/* One group of a convolution: channels of x and of y, and the distance from one output channel's weights to
 * the next one's. */
typedef struct {
    const ag_conv2d_shape *s;
    int32_t channels, outputs;
    ptrdiff_t filter;
} ag_conv2d_group;

static inline ag_conv2d_group ag_group_of(const ag_conv2d_shape *s) {
    ag_conv2d_group g;
    g.s = s;
    g.channels = s->c / s->groups;
    g.outputs = s->o / s->groups;
    g.filter = (ptrdiff_t)s->kh * s->kw * g.channels;
    return g;
}

/* Whether `columns` taps of a row, all channels of each, follow one another in x. */
static inline bool ag_taps_follow(const ag_conv2d_group *g, int32_t columns) {
    const ptrdiff_t step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    return (g->channels == 1 || g->s->x_c == 1) && (columns == 1 || step == g->channels);
}

#endif
