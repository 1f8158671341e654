/* One group of a convolution as the micro-kernels read it (microkernel.h). Where the elements of a row of the
 * window are contiguous in x, each row is one k-run; otherwise each tap is one if its channels are, or
 * windows are computed one by one (window_products.h).
 *
 *     x:  row i of the window    |t0 c0..cn|t1 c0..cn|t2 c0..cn|    one k-run of kw * channels products
 *         row i + 1              |t0 c0..cn|t1 c0..cn|t2 c0..cn|    a_skip bytes further */
#ifndef AG_TILES_CONV2D_GROUP_H
#define AG_TILES_CONV2D_GROUP_H

#include "ag_shapes.h"
#include "tiles/microkernel.h"

#include <stdbool.h>

/* Channels of x and of y in one group, the distance between the weights of two output channels, and memory,
 * or NULL, for the packed weights of a panel of channels: all weights whose products one result adds up. */
typedef struct {
    const ag_conv2d_shape *s;
    int32_t channels, outputs;
    ptrdiff_t filter;
    float *panel;
} ag_conv2d_group;

static inline ag_conv2d_group ag_conv2d_group_of(const ag_conv2d_shape *s) {
    ag_conv2d_group g;
    g.s = s;
    g.channels = s->c / s->groups;
    g.outputs = s->o / s->groups;
    g.filter = (ptrdiff_t)s->kh * s->kw * g.channels;
    g.panel = NULL;
    return g;
}

/* The gradient of one group's channels of all images; arrays start at the group. */
#define AG_OF_GROUP(kernel) AG_JOIN(kernel, group)
typedef void ag_conv2d_dx_group_fn(const float *dy, const float *w, float *dx, int32_t n,
                                   const ag_conv2d_group *g);
ag_conv2d_dx_group_fn AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32));

/* Whether `columns` taps of a row, all channels of each, are contiguous in x. */
static inline bool ag_taps_contiguous(const ag_conv2d_group *g, int32_t columns) {
    const ptrdiff_t step = (ptrdiff_t)g->s->dilation_w * g->s->x_w;
    return (g->channels == 1 || g->s->x_c == 1) && (columns == 1 || step == g->channels);
}

#endif
