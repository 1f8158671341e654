/* Convolution, depthwise convolution and pooling, also of quantised images: strides, padding, dilation,
 * groups, overlapping windows, and images with gaps between elements. */
#include "compare.h"

#include "ag_rng.h"

#include <string.h>

#ifndef COMPARE_RANDOM
#define COMPARE_RANDOM 0 /* images of random geometry, after the images of a table */
#endif

typedef enum image_layout { DENSE, STRIDED, CHANNEL_FIRST, LAYOUTS } image_layout;

/* Numbers of an image and its windows. A dilation of 0 is 1; groups of 0 are 1, or for depthwise convolution
 * one for each channel. */
typedef struct images {
    uint8_t n, h, w, c, o, kh, kw, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right, dilation_h,
        dilation_w;
    uint8_t groups; /* of a pool: the divisor */
    uint8_t count_pad;
} images;
typedef uint8_t table[sizeof(images)];

static const table convolutions[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},         {1, 5, 5, 1, 1, 3, 3, 1, 1, 0, 0, 0, 0},
    {2, 6, 7, 3, 4, 3, 2, 1, 1, 1, 1, 0, 1},         {1, 12, 12, 1, 6, 5, 5, 1, 1, 0, 0, 0, 0},
    {1, 8, 8, 6, 5, 5, 5, 1, 1, 2, 2, 2, 2},         {1, 7, 9, 4, 4, 3, 3, 2, 1, 1, 1, 1, 1},
    {1, 9, 7, 2, 3, 3, 3, 2, 3, 0, 1, 1, 0},         {1, 6, 6, 4, 6, 2, 2, 1, 2, 0, 0, 1, 0, 2, 1, 2},
    {2, 3, 2, 5, 3, 1, 1, 1, 1, 0, 0, 0, 0},         {1, 4, 4, 16, 8, 1, 1, 1, 1, 0, 0, 0, 0},
    {1, 6, 6, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1},         {1, 2, 2, 3, 2, 3, 3, 1, 1, 2, 2, 2, 2},
    {1, 5, 6, 17, 5, 3, 3, 1, 1, 1, 1, 1, 1},        {3, 5, 4, 2, 9, 2, 3, 1, 1, 0, 0, 1, 1},
    {1, 9, 9, 2, 4, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},   {1, 10, 4, 1, 8, 10, 4, 2, 2, 4, 5, 1, 1},
    {1, 6, 5, 12, 13, 1, 1, 2, 2, 0, 0, 0, 0},       {1, 4, 9, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6},
    {2, 10, 8, 1, 5, 3, 3, 1, 1, 0, 0, 0, 0},        {2, 10, 12, 1, 3, 5, 5, 1, 1, 0, 0, 0, 0},
    {1, 9, 8, 3, 6, 5, 5, 2, 2, 2, 2, 1, 2},         {1, 8, 10, 1, 9, 3, 3, 1, 1, 0, 0, 0, 0},
    {1, 1, 13, 3, 5, 1, 5, 1, 1, 0, 0, 2, 2},        {1, 3, 6, 6, 8, 3, 3, 1, 1, 1, 1, 1, 1},
    {2, 7, 9, 1, 5, 4, 2, 1, 1, 0, 0, 0, 0},         {1, 8, 9, 1, 4, 3, 4, 1, 1, 0, 0, 0, 0},
    {1, 4, 5, 2, 50, 3, 3, 1, 1, 1, 1, 1, 1},        {1, 3, 15, 17, 1, 3, 3, 1, 1, 1, 1, 1, 1},
    {1, 7, 9, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1},         {1, 7, 9, 8, 8, 3, 1, 2, 1, 1, 1, 0, 0},
    {1, 4, 12, 8, 16, 1, 3, 1, 1, 0, 0, 2, 2, 1, 2}, {1, 4, 12, 3, 8, 1, 3, 1, 1, 0, 0, 2, 2, 1, 2},
    {1, 6, 5, 6, 16, 2, 5, 1, 1, 0, 0, 0, 0},        {2, 5, 4, 5, 17, 3, 2, 2, 1, 1, 1, 0, 1}};

/* Groups of few channels. */
static const table grouped[] = {
    {1, 5, 6, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8},   {1, 6, 7, 11, 33, 3, 2, 2, 1, 1, 1, 0, 1, 1, 2, 11},
    {1, 4, 5, 9, 36, 2, 3, 1, 2, 0, 1, 2, 0, 1, 1, 9},   {1, 4, 3, 8, 64, 2, 3, 2, 2, 1, 1, 1, 1, 1, 1, 8},
    {1, 7, 5, 16, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 8},  {1, 5, 4, 15, 15, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 5},
    {1, 6, 5, 12, 4, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 4},   {1, 14, 2, 10, 10, 13, 1, 1, 1, 6, 6, 0, 0, 1, 1, 5},
    {1, 2, 17, 9, 18, 1, 12, 1, 1, 0, 0, 4, 3, 1, 1, 9}, {2, 7, 7, 8, 16, 2, 2, 3, 3, 0, 0, 0, 0, 1, 1, 8},
    {1, 3, 4, 20, 10, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 5},  {1, 3, 4, 70, 70, 1, 3, 1, 1, 0, 0, 1, 1, 1, 1, 35}};

static const table wide[] = {
    {1, 8, 9, 9, 17, 3, 3, 1, 1, 1, 1, 1, 1},   {2, 9, 7, 8, 8, 3, 3, 1, 1, 2, 0, 1, 2},
    {1, 8, 8, 70, 40, 3, 3, 1, 1, 1, 1, 1, 1},  {1, 9, 8, 8, 35, 3, 3, 1, 1, 0, 1, 0, 1},
    {1, 8, 8, 33, 100, 3, 3, 1, 1, 1, 1, 1, 1}, {1, 93, 2, 3, 6, 91, 1, 1, 1, 0, 0, 0, 0}};

/* Windows outside x, and images of one row, some with more padding on the right. */
static const table more[] = {
    {1, 3, 4, 4, 5, 1, 1, 1, 1, 0, 1, 0, 0},  {1, 3, 4, 4, 5, 1, 1, 1, 1, 0, 0, 0, 1},
    {1, 1, 1, 4, 5, 1, 1, 1, 1, 1, 0, 0, 0},  {1, 1, 1, 4, 5, 1, 1, 1, 1, 0, 0, 1, 0},
    {2, 1, 9, 4, 5, 1, 4, 1, 1, 0, 0, 1, 2},  {1, 1, 8, 8, 6, 1, 3, 1, 1, 0, 0, 1, 1},
    {1, 1, 12, 4, 5, 1, 6, 1, 2, 0, 0, 0, 4}, {1, 1, 1, 4, 5, 1, 3, 1, 1, 1, 1, 1, 1}};

static const table depthwise[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},   {1, 5, 5, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1},
    {2, 6, 7, 3, 3, 3, 2, 1, 1, 1, 1, 0, 1},   {1, 6, 6, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1},
    {1, 7, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1},   {1, 8, 8, 17, 17, 3, 3, 2, 1, 0, 1, 0, 1},
    {3, 4, 3, 5, 5, 2, 2, 1, 1, 0, 0, 0, 0},   {1, 7, 7, 6, 6, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},
    {1, 9, 8, 12, 12, 5, 5, 1, 1, 2, 2, 2, 2}, {1, 2, 2, 4, 4, 3, 3, 1, 1, 2, 2, 2, 2},
    {1, 5, 6, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1}, {2, 5, 5, 9, 9, 3, 3, 1, 2, 1, 1, 0, 1, 1, 2},
    {2, 4, 5, 11, 11, 3, 3, 2, 2, 1, 1, 1, 1}, {1, 3, 4, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1},
    {1, 5, 4, 4, 4, 3, 3, 1, 1, 2, 0, 0, 0},   {1, 4, 5, 4, 4, 3, 3, 1, 1, 0, 0, 2, 0},
    {1, 3, 4, 8, 8, 3, 3, 1, 1, 0, 2, 0, 2},   {1, 2, 2, 130, 130, 3, 3, 1, 1, 1, 1, 1, 1}};

static const table pools[] = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0},
                              {1, 8, 8, 3, 3, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0},
                              {2, 7, 5, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0},
                              {1, 7, 7, 5, 5, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0, 1},
                              {1, 6, 9, 8, 8, 3, 2, 1, 1, 1, 0, 0, 1, 0, 0},
                              {1, 9, 9, 1, 1, 3, 3, 1, 2, 1, 1, 1, 1, 2, 2},
                              {1, 5, 5, 17, 17, 5, 5, 5, 5, 0, 0, 0, 0, 0},
                              {3, 4, 6, 2, 2, 2, 3, 2, 3, 0, 0, 0, 0, 1, 1, 7},
                              {1, 6, 6, 16, 16, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 1},
                              {1, 25, 5, 4, 4, 25, 5, 1, 1, 0, 0, 0, 0, 0},
                              {2, 7, 9, 8, 8, 3, 3, 2, 2, 0, 0, 0, 0, 0, 0},
                              {1, 5, 5, 33, 33, 2, 2, 1, 1, 0, 0, 0, 0, 0},
                              {1, 8, 8, 9, 9, 8, 8, 8, 8, 0, 0, 0, 0, 0, 0},
                              {1, 6, 6, 24, 24, 3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 4, 1}};

static uint8_t between(uint32_t i, uint32_t *drawn, int32_t low, int32_t high) {
    return (uint8_t)(low + (int32_t)(ag_rand_u32(40u, i, (*drawn)++) % (uint32_t)(high - low + 1)));
}

/* Row `i` of a table, or after its end a random image. */
static images image_at(const table *rows, uint32_t i) {
    const bool depth = rows == depthwise;
    const bool random = i >= (depth ? COMPARE_COUNT(depthwise) : COMPARE_COUNT(convolutions));
    uint32_t drawn = 0;
    images r;
    do {
        const int32_t pads = 2 * between(i, &drawn, 0, 1), dilation = between(i, &drawn, 0, 3) == 0 ? 3 : 1;
        const int32_t groups = depth ? 20 : between(i, &drawn, 0, 4) == 0 ? 3 : 1;
        const int32_t c = depth ? 1 : between(i, &drawn, 0, 1) == 0 ? 3 : 9, o = depth ? 1 : 9;
        const int32_t most[] = {2,    7,    7,    c,    o,        5,        5,      3, 3,
                                pads, pads, pads, pads, dilation, dilation, groups, 1};
        table any;
        for (uint32_t k = 0; k < sizeof(table); k++) {
            any[k] = between(i, &drawn, k >= 9 && k <= 12 ? 0 : 1, most[k]);
        }
        memcpy(&r, random ? any : rows[i], sizeof r);
        if (random) {
            r.c = (uint8_t)(r.c * r.groups);
            r.o = (uint8_t)(r.o * r.groups);
        }
        r.dilation_h += r.dilation_h == 0;
        r.dilation_w += r.dilation_w == 0;
    } while (r.h + r.pad_top + r.pad_bottom <= (r.kh - 1) * r.dilation_h ||
             r.w + r.pad_left + r.pad_right <= (r.kw - 1) * r.dilation_w);
    if (rows != pools && r.groups == 0) {
        r.groups = depth ? r.c : 1;
    }
    return r;
}

static int32_t results(int32_t extent, int32_t pads, int32_t window, int32_t dilation, int32_t stride) {
    return (extent + pads - (window - 1) * dilation - 1) / stride + 1;
}

static compare_layout layout_of(const compare_attributes *f, const char *name) {
    const ag_conv2d_shape *s = &f->conv2d_shape;
    const ag_conv2d_pool_shape *p = &f->conv2d_pool_shape;
    switch (*name == 'd' ? name[1] : *name) {
    case 'x':
        return (compare_layout){{f->n, s->h, s->w, s->c}, {s->x_n, s->x_h, s->x_w, s->x_c}};
    case 'y':
        return p->ph != 0 ? compare_matrix(f->n * p->ph * p->pw, s->o, s->o)
                          : compare_matrix(f->n * s->oh * s->ow, s->o, s->ldy);
    case 'w':
        return compare_matrix(1, s->o * s->kh * s->kw * (s->c / s->groups), 1);
    default: /* bias */
        return compare_matrix(1, s->o, 1);
    }
}

/* The attributes of an image, in the fields of all shapes. `pool`: rows, columns and strides of pooling
 * windows, or NULL. */
static compare_attributes attributes_of(const images *i, image_layout layout, const int32_t *pool) {
    const int32_t gap = layout == STRIDED ? 1 : 0, pixel = i->c + 2 * gap, row = i->w * pixel + gap,
                  image = i->h * row + 3 * gap;
    const bool planes = layout == CHANNEL_FIRST;
    const int32_t x[] = {image, planes ? i->w : row, planes ? 1 : pixel, planes ? i->h * i->w : 1};
    const int32_t oh = results(i->h, i->pad_top + i->pad_bottom, i->kh, i->dilation_h, i->stride_h);
    const int32_t ow = results(i->w, i->pad_left + i->pad_right, i->kw, i->dilation_w, i->stride_w);
    compare_attributes f = {.n = i->n, .layout = layout_of, .channels = i->o, .alpha = 1.0f};
    f.conv2d_shape = (ag_conv2d_shape){
        i->h,      i->w,        i->c,        oh,         ow,          i->o,          i->kh,
        i->kw,     i->stride_h, i->stride_w, i->pad_top, i->pad_left, i->dilation_h, i->dilation_w,
        i->groups, x[0],        x[1],        x[2],       x[3],        i->o + 3 * gap};
    f.pool2d_shape = (ag_pool2d_shape){i->h,         i->w,          i->c,          oh,
                                       ow,           i->kh,         i->kw,         i->stride_h,
                                       i->stride_w,  i->pad_top,    i->pad_bottom, i->pad_left,
                                       i->pad_right, i->dilation_h, i->dilation_w, i->groups,
                                       i->count_pad, x[0],          x[1],          x[2],
                                       x[3]};
    if (pool != NULL) { /* the last window may extend past the end */
        const int32_t ph = (oh + pool[2] - 1) / pool[2], pw = (ow + pool[3] - 1) / pool[3];
        f.conv2d_pool_shape = (ag_conv2d_pool_shape){
            i->h,          i->w,          i->c,        oh,          ow,         i->o,
            i->kh,         i->kw,         i->stride_h, i->stride_w, i->pad_top, i->pad_left,
            i->dilation_h, i->dilation_w, x[0],        x[1],        x[2],       x[3],
            pool[0],       pool[1],       pool[2],     pool[3],     ph,         pw};
    }
    return f;
}

/* Products of each sum of the array that a kernel of a convolution writes. */
static int32_t terms_of(const compare_row *row, const compare_attributes *f) {
    const ag_conv2d_shape *s = &f->conv2d_shape;
    const ag_conv2d_pool_shape *p = &f->conv2d_pool_shape;
    const char *const name = compare_output_array(row)->name;
    if (name[1] == 'w') {
        return f->n * (p->ph != 0 ? p->ph * p->pw : s->oh * s->ow);
    }
    return s->kh * s->kw * ((*name == 'y' ? s->c : s->o) / s->groups);
}

typedef void reference(const compare_attributes *f, const compare_call *c);

/* Every image in each layout and with each of the first `scales` of compare_scales, in pairs, not in all
 * combinations; then `epilogues` times with an epilogue. */
static void all(const compare_row *row, const table *rows, uint32_t count, int32_t scales, int32_t epilogues,
                reference *ref) {
    const int32_t plain = scales > LAYOUTS ? scales : LAYOUTS;
    for (uint32_t i = 0; i < count; i++) {
        const images image = image_at(rows, i);
        for (int32_t k = 0; k < plain + epilogues; k++) {
            compare_attributes f = attributes_of(&image, (image_layout)((i + (uint32_t)k) % LAYOUTS), NULL);
            f.epilogue = k < plain ? 0 : 1;
            f.alpha = compare_scales[f.epilogue ? 0 : k % scales][0];
            f.beta = compare_scales[f.epilogue ? 0 : k % scales][1];
            f.terms = terms_of(row, &f);
            f.reference = ref;
            f.x_zero = ref == NULL ? 0 : image.c % 2 == 0 ? -128 : 5;
            compare_case(row, &f);
        }
    }
}

static void all_convolutions(const compare_row *row, int32_t scales, int32_t epilogues, reference *ref) {
    all(row, convolutions, COMPARE_COUNT(convolutions) + COMPARE_RANDOM, scales, epilogues, ref);
    all(row, grouped, COMPARE_COUNT(grouped), scales, epilogues, ref);
#if COMPARE_FLOATS >= COMPARE_HOST
    all(row, wide, COMPARE_COUNT(wide), scales, epilogues, ref);
#endif
}

static void all_depthwise(const compare_row *row, int32_t scales, int32_t epilogues, reference *ref) {
    all(row, depthwise, COMPARE_COUNT(depthwise) + COMPARE_RANDOM, scales, epilogues, ref);
}

/* Also a sum that must be complete before the weight is read. */
static void many_pixels(const compare_row *row) {
    static const images image = {1, 32, 32, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0};
    compare_attributes f = attributes_of(&image, DENSE, NULL);
    f.beta = 1.0f;
    f.terms = terms_of(row, &f);
    f.values = COMPARE_SMALL;
    compare_case(row, &f);
}

/* Gradients of integers are compared with gradients of floats. */
#define REFERENCES(name, ...)                                                                                \
    static void name##_dx(const compare_attributes *f, const compare_call *c) {                              \
        ag_##name##_dx_f32_ref(c->in[0], c->in[2], c->out, f->n, __VA_ARGS__);                               \
    }                                                                                                        \
    static void name##_dw(const compare_attributes *f, const compare_call *c) {                              \
        ag_##name##_dw_f32_ref(c->in[2], c->in[1], c->out, f->n, &f->conv2d_shape, c->alpha, c->beta);       \
    }
REFERENCES(conv2d, NULL, &f->conv2d_shape)
REFERENCES(depthwise2d, &f->conv2d_shape)

COMPARE_CASES(conv2d_f32, all_convolutions(row, 1, 3, NULL))
COMPARE_CASES(conv2d_dx_f32, all_convolutions(row, 1, 0, NULL))
COMPARE_CASES(conv2d_dw_f32, all_convolutions(row, COMPARE_SCALES, 0, NULL); many_pixels(row))
COMPARE_CASES(depthwise2d_f32, all_depthwise(row, 1, 3, NULL))
COMPARE_CASES(depthwise2d_dx_f32, all_depthwise(row, 1, 0, NULL))
COMPARE_CASES(depthwise2d_dw_f32, all_depthwise(row, COMPARE_SCALES, 0, NULL); many_pixels(row))
COMPARE_CASES(conv2d_dx_f32_s8, all_convolutions(row, 1, 0, conv2d_dx))
COMPARE_CASES(conv2d_dw_s8_f32, all_convolutions(row, COMPARE_SCALES, 0, conv2d_dw))
COMPARE_CASES(depthwise2d_dx_f32_s8, all_depthwise(row, 1, 0, depthwise2d_dx))
COMPARE_CASES(depthwise2d_dw_s8_f32, all_depthwise(row, COMPARE_SCALES, 0, depthwise2d_dw))

/* Every image, dense, with four encodings; without `ref` also with gaps and with channels first. */
static void all_s8(const compare_row *row, const table *rows, uint32_t count, reference *ref) {
    for (uint32_t i = 0; i < count; i++) {
        const images image = image_at(rows, i);
        for (uint32_t k = 0; k < (ref == NULL ? 6 : 4); k++) {
            compare_attributes f = attributes_of(&image,
                                                 k < 4    ? DENSE
                                                 : k == 4 ? STRIDED
                                                          : CHANNEL_FIRST,
                                                 NULL);
            const ag_conv2d_shape *s = &f.conv2d_shape;
            f.in_place = ref != NULL;
            f.reference = ref;
            f.terms = terms_of(row, &f);
            f.per_channel = 1;
            f.small = k == 1 || k == 3 ? 'w' : 0;
            compare_encode(&f, k < 4 ? i + k : i);
            if (!f.in_place || (s->oh <= s->h && s->ow <= s->w)) {
                compare_case(row, &f);
            }
        }
    }
}

static void in_other_memory(const compare_attributes *f, const compare_call *c) {
    ag_depthwise2d_s8_ref((const int8_t *)c->in[0], (const int8_t *)c->in[1], c->bias, c->multiplier,
                          c->shift, (int8_t *)c->out, f->n, f->x_zero, f->y_zero, f->low, f->high, NULL,
                          &f->conv2d_shape);
}

COMPARE_CASES(conv2d_s8, all_s8(row, convolutions, COMPARE_COUNT(convolutions) + COMPARE_RANDOM, NULL);
              all_s8(row, more, COMPARE_COUNT(more), NULL))
COMPARE_CASES(depthwise2d_s8, all_s8(row, depthwise, COMPARE_COUNT(depthwise) + COMPARE_RANDOM, NULL))
COMPARE_CASES(conv2d_within_s8, all_s8(row, convolutions, COMPARE_COUNT(convolutions), NULL))
COMPARE_CASES(depthwise2d_within_s8, all_s8(row, depthwise, COMPARE_COUNT(depthwise), NULL))
COMPARE_CASES(depthwise2d_in_place_s8, all_s8(row, depthwise, COMPARE_COUNT(depthwise), in_other_memory))

/* Indices from ref for other values, so that all are valid. */
static void valid_index(const compare_attributes *f) {
    const float *x = compare_input(0, layout_of(f, "x"), COMPARE_EIGHTHS);
    if (f->conv2d_pool_shape.ph == 0) {
        ag_max_pool2d_f32_ref(x, compare_output(layout_of(f, "y"), 0.0f), compare_input_index(), f->n,
                              &f->pool2d_shape);
        return;
    }
    const float *w = compare_input(1, layout_of(f, "w"), COMPARE_EIGHTHS);
    const float *bias = compare_input(2, layout_of(f, "bias"), COMPARE_EIGHTHS);
    ag_conv2d_pool_f32_ref(x, w, bias, compare_output(layout_of(f, "y"), 0.0f), compare_input_index(), f->n,
                           &f->conv2d_pool_shape);
}

/* Convolution with pooling, one group: every image with every window in the first `layouts`; scales in turn.
 * Sums are exact where rounding would decide which element of a window is the first maximum. */
static void all_pooled(const compare_row *row, uint32_t layouts) {
    static const int32_t windows[][4] = {
        {2, 2, 2, 2}, {1, 1, 1, 1}, {1, 2, 3, 2}, {2, 3, 2, 3}, {3, 3, 3, 3}};
    const char *const name = compare_output_array(row)->name;
    const bool exact = *name == 'y';
    for (uint32_t i = 0; i < COMPARE_COUNT(convolutions) + COMPARE_RANDOM; i++) {
        const images image = image_at(convolutions, i);
        for (uint32_t k = 0; image.groups == 1 && k < COMPARE_COUNT(windows) * layouts; k++) {
            const uint32_t window = k / layouts, layout = k % layouts;
            for (int32_t v = 0; v < (exact ? 2 : 1); v++) {
                compare_attributes f = attributes_of(&image, (image_layout)layout, windows[window]);
                f.values = !exact ? COMPARE_UNIFORM : v == 0 ? COMPARE_EIGHTHS : COMPARE_NANS;
                f.terms = exact ? 0 : terms_of(row, &f);
                f.index = exact ? NULL : valid_index;
                if (name[1] == 'w') {
                    f.alpha = compare_scales[(i + window + layout) % COMPARE_SCALES][0];
                    f.beta = compare_scales[(i + window + layout) % COMPARE_SCALES][1];
                }
                compare_case(row, &f);
            }
        }
    }
}

COMPARE_CASES(conv2d_pool_f32, all_pooled(row, LAYOUTS))
COMPARE_CASES(conv2d_pool_dx_f32, all_pooled(row, 1)) /* whose dx has no gaps */
COMPARE_CASES(conv2d_pool_dw_f32, all_pooled(row, LAYOUTS))

/* With equal elements; the first one is the maximum. */
static void all_pools(const compare_row *row, compare_values values, bool sums, bool index, bool small) {
    for (uint32_t i = 0; i < COMPARE_COUNT(pools); i++) {
        const images image = image_at(pools, i);
        for (int32_t layout = DENSE; layout < LAYOUTS; layout++) {
            compare_attributes f = attributes_of(&image, (image_layout)layout, NULL);
            f.low = image.c % 2 == 0 ? -128 : -50;
            f.high = image.c % 2 == 0 ? 127 : 60;
            f.conv2d_shape.ldy = image.o;
            f.values = values;
            f.terms = sums ? image.kh * image.kw : 0;
            f.index = index ? valid_index : NULL;
            f.small = small && image.kh == 2 ? 'x' : 0;
            compare_case(row, &f);
        }
    }
}

COMPARE_CASES(max_pool2d_f32, all_pools(row, COMPARE_EIGHTHS, false, false, false))
COMPARE_CASES(max_pool2d_values_f32, all_pools(row, COMPARE_EIGHTHS, false, false, false))
COMPARE_CASES(max_pool2d_dx_f32, all_pools(row, COMPARE_UNIFORM, true, true, false))
COMPARE_CASES(max_pool2d_pick_f32, all_pools(row, COMPARE_UNIFORM, false, true, false))
COMPARE_CASES(avg_pool2d_f32, all_pools(row, COMPARE_UNIFORM, true, false, false))
COMPARE_CASES(avg_pool2d_dx_f32, all_pools(row, COMPARE_UNIFORM, true, false, false))
COMPARE_CASES(max_pool2d_s8, all_pools(row, COMPARE_UNIFORM, false, false, false))
COMPARE_CASES(avg_pool2d_s8, all_pools(row, COMPARE_UNIFORM, false, false, true))
