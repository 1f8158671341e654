/* Images, windows and their memory layouts, for the tests of convolutions. */
#ifndef IMAGES_H
#define IMAGES_H

#include "image_layout.h"

#include "ag_rng.h"

typedef struct images {
    int32_t n, h, w, c, o, kh, kw, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right, dilation_h,
        dilation_w, groups;
} images;

#ifndef COMPARE_RANDOM
#define COMPARE_RANDOM 0 /* images of random geometry, after those of each table */
#endif

static const images convolutions[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},   {1, 5, 5, 1, 1, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {2, 6, 7, 3, 4, 3, 2, 1, 1, 1, 1, 0, 1, 1, 1, 1},   {1, 12, 12, 1, 6, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 8, 8, 6, 5, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 1},   {1, 7, 9, 4, 4, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1},
    {1, 9, 7, 2, 3, 3, 3, 2, 3, 0, 1, 1, 0, 1, 1, 1},   {1, 6, 6, 4, 6, 2, 2, 1, 2, 0, 0, 1, 0, 2, 1, 2},
    {2, 3, 2, 5, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},   {1, 4, 4, 16, 8, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 6, 6, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},   {1, 2, 2, 3, 2, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1},
    {1, 5, 6, 17, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},  {3, 5, 4, 2, 9, 2, 3, 1, 1, 0, 0, 1, 1, 1, 1, 1},
    {1, 9, 9, 2, 4, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 1},   {1, 10, 4, 1, 8, 10, 4, 2, 2, 4, 5, 1, 1, 1, 1, 1},
    {1, 6, 5, 12, 13, 1, 1, 2, 2, 0, 0, 0, 0, 1, 1, 1}, {1, 4, 9, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6},
    {2, 10, 8, 1, 5, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1},  {2, 10, 12, 1, 3, 5, 5, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 9, 8, 3, 6, 5, 5, 2, 2, 2, 2, 1, 2, 1, 1, 1},   {1, 8, 10, 1, 9, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 1, 13, 3, 5, 1, 5, 1, 1, 0, 0, 2, 2, 1, 1, 1},  {1, 3, 6, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 7, 9, 1, 5, 4, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1},   {1, 8, 9, 1, 4, 3, 4, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 4, 5, 2, 50, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
};

static const images depthwise[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
    {1, 5, 5, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 6, 7, 3, 3, 3, 2, 1, 1, 1, 1, 0, 1, 1, 1, 3},
    {1, 6, 6, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8},
    {1, 7, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 4},
    {1, 8, 8, 17, 17, 3, 3, 2, 1, 0, 1, 0, 1, 1, 1, 17},
    {3, 4, 3, 5, 5, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 5},
    {1, 7, 7, 6, 6, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 6},
    {1, 9, 8, 12, 12, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 12},
    {1, 2, 2, 4, 4, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 4},
    {1, 5, 6, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 16},
    {2, 5, 5, 9, 9, 3, 3, 1, 2, 1, 1, 0, 1, 1, 2, 9},
    {2, 4, 5, 11, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 11},
    {1, 3, 4, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 64},
    {1, 5, 4, 4, 4, 3, 3, 1, 1, 2, 0, 0, 0, 1, 1, 4},
    {1, 4, 5, 4, 4, 3, 3, 1, 1, 0, 0, 2, 0, 1, 1, 4},
    {1, 3, 4, 8, 8, 3, 3, 1, 1, 0, 2, 0, 2, 1, 1, 8},
    {1, 2, 2, 130, 130, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 130},
};

/* Row `i` of a table, or a random image after its end. */
static inline images image_at(const images *table, uint32_t rows, uint32_t i) {
    uint32_t drawn = 0;
    if (i < rows) {
        return table[i];
    }
#define BETWEEN(low, high) ((low) + (int32_t)(ag_rand_u32(40u, i, drawn++) % (uint32_t)((high) - (low) + 1)))
    for (;;) {
        const int32_t pads = 2 * BETWEEN(0, 1), dilation = BETWEEN(0, 3) == 0 ? 3 : 1;
        images r = {.n = BETWEEN(1, 2), .h = BETWEEN(1, 7), .w = BETWEEN(1, 7)};
        r.kh = BETWEEN(1, 5);
        r.kw = BETWEEN(1, 5);
        r.stride_h = BETWEEN(1, 3);
        r.stride_w = BETWEEN(1, 3);
        r.pad_top = BETWEEN(0, pads);
        r.pad_bottom = BETWEEN(0, pads);
        r.pad_left = BETWEEN(0, pads);
        r.pad_right = BETWEEN(0, pads);
        r.dilation_h = BETWEEN(1, dilation);
        r.dilation_w = BETWEEN(1, dilation);
        r.groups = table == depthwise ? BETWEEN(1, 20) : BETWEEN(0, 4) == 0 ? BETWEEN(1, 3) : 1;
        r.c = r.groups * (table == depthwise ? 1 : BETWEEN(1, BETWEEN(0, 1) == 0 ? 3 : 9));
        r.o = r.groups * (table == depthwise ? 1 : BETWEEN(1, 9));
        if (r.h + r.pad_top + r.pad_bottom > (r.kh - 1) * r.dilation_h &&
            r.w + r.pad_left + r.pad_right > (r.kw - 1) * r.dilation_w) {
            return r;
        }
    }
#undef BETWEEN
}

static inline compare_layout array_layout(const images *i, image_layout kind) {
    return image_strides(i->n, i->h, i->w, i->c, kind);
}

static inline ag_conv2d_shape shape_of(const images *i, image_layout layout) {
    const compare_layout x = array_layout(i, layout);
    ag_conv2d_shape s;
    s.h = i->h;
    s.w = i->w;
    s.c = i->c;
    s.oh = results(i->h, i->pad_top + i->pad_bottom, i->kh, i->dilation_h, i->stride_h);
    s.ow = results(i->w, i->pad_left + i->pad_right, i->kw, i->dilation_w, i->stride_w);
    s.o = i->o;
    s.kh = i->kh;
    s.kw = i->kw;
    s.stride_h = i->stride_h;
    s.stride_w = i->stride_w;
    s.pad_top = i->pad_top;
    s.pad_left = i->pad_left;
    s.dilation_h = i->dilation_h;
    s.dilation_w = i->dilation_w;
    s.groups = i->groups;
    s.x_n = x.stride[0];
    s.x_h = x.stride[1];
    s.x_w = x.stride[2];
    s.x_c = x.stride[3];
    s.ldy = i->o + (layout == STRIDED ? 3 : 0);
    return s;
}

static inline compare_layout weights_of(const ag_conv2d_shape *s) {
    return compare_dense(s->o * s->kh * s->kw * (s->c / s->groups));
}

static inline compare_layout results_of(const ag_conv2d_shape *s, int32_t n) {
    return compare_matrix(n * s->oh * s->ow, s->o, s->ldy);
}

#endif
