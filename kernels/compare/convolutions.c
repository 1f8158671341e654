/* Convolution and depthwise convolution: strides, padding, dilation, groups, and images with gaps between
 * elements. */
#include "images.h"

static const images depthwise[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},    {1, 5, 5, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 6, 7, 3, 3, 3, 2, 1, 1, 1, 1, 0, 1, 1, 1, 3},    {1, 6, 6, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8},
    {1, 7, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 4},    {1, 8, 8, 17, 17, 3, 3, 2, 1, 0, 1, 0, 1, 1, 1, 17},
    {3, 4, 3, 5, 5, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 5},    {1, 7, 7, 6, 6, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 6},
    {1, 9, 8, 12, 12, 5, 5, 1, 1, 2, 2, 2, 2, 1, 1, 12}, {1, 2, 2, 4, 4, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 4},
    {1, 5, 6, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 16}, {2, 5, 5, 9, 9, 3, 3, 1, 2, 1, 1, 0, 1, 1, 2, 9},
    {2, 4, 5, 11, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 11}, {1, 3, 4, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 64},
};

static void print_case(const compare_attributes *f) {
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_print_field("n", f->n);
    compare_print_field("h", s->h);
    compare_print_field("w", s->w);
    compare_print_field("c", s->c);
    compare_print_field("o", s->o);
    compare_print_field("kh", s->kh);
    compare_print_field("kw", s->kw);
    compare_print_field("stride_h", s->stride_h);
    compare_print_field("stride_w", s->stride_w);
    compare_print_field("pad_top", s->pad_top);
    compare_print_field("pad_left", s->pad_left);
    compare_print_field("dilation_h", s->dilation_h);
    compare_print_field("dilation_w", s->dilation_w);
    compare_print_field("groups", s->groups);
    compare_print_field("x_w", s->x_w);
    compare_print_field("x_c", s->x_c);
    compare_print_field("ldy", s->ldy);
    compare_print_scales(f);
}

static compare_layout weights_of(const ag_conv2d_shape *s) {
    return compare_dense(s->o * s->kh * s->kw * (s->c / s->groups));
}

static compare_layout results_of(const ag_conv2d_shape *s, int32_t n) {
    return compare_matrix(n * s->oh * s->ow, s->o, s->ldy);
}

/* An operation and its adjoints in `ref`, and the tested images. */
typedef struct family {
    ag_conv2d_f32_fn *forward;
    ag_conv2d_dx_f32_fn *dx;
    ag_conv2d_dw_f32_fn *dw;
    const images *table;
    uint32_t rows;
} family;

static const family conv2d = {ag_conv2d_f32_ref, ag_conv2d_dx_f32_ref, ag_conv2d_dw_f32_ref, convolutions,
                              sizeof convolutions / sizeof *convolutions};
static const family depthwise2d = {ag_depthwise2d_f32_ref, ag_depthwise2d_dx_f32_ref,
                                   ag_depthwise2d_dw_f32_ref, depthwise,
                                   sizeof depthwise / sizeof *depthwise};

static compare_attributes attributes_of(const images *i, image_layout layout) {
    compare_attributes f = {0};
    f.n = i->n;
    f.alpha = 1.0f;
    f.conv2d_shape = shape_of(i, layout);
    return f;
}

typedef void cases_of(const compare_row *row, const family *ref, const images *i, image_layout layout,
                      compare_attributes *f);

static void all(const compare_row *row, cases_of *one, const family *ref) {
    for (uint32_t i = 0; i < ref->rows; i++) {
        for (int32_t l = DENSE; l <= CHANNEL_FIRST; l++) {
            compare_attributes f = attributes_of(ref->table + i, (image_layout)l);
            one(row, ref, ref->table + i, (image_layout)l, &f);
        }
    }
}

static void forward(const compare_row *row, const family *ref, const images *i, image_layout layout,
                    compare_attributes *f) {
    ag_conv2d_f32_fn *kernel = (ag_conv2d_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    if (!compare_matches(row, f)) {
        return;
    }
    const float *x = compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
    const float *w = compare_input(1, weights_of(s), COMPARE_UNIFORM);
    compare_output(results_of(s, f->n), 0.0f);
    kernel(x, w, compare_actual(), f->n, s);
    ref->forward(x, w, compare_expected(), f->n, s);
    compare_make_magnitudes();
    ref->forward(x, w, compare_magnitudes(), f->n, s);
    compare_check(f, s->kh * s->kw * (s->c / s->groups), print_case);
}

static void dx(const compare_row *row, const family *ref, const images *i, image_layout layout,
               compare_attributes *f) {
    ag_conv2d_dx_f32_fn *kernel = (ag_conv2d_dx_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    if (!compare_matches(row, f)) {
        return;
    }
    const float *dy = compare_input(0, results_of(s, f->n), COMPARE_UNIFORM);
    const float *w = compare_input(1, weights_of(s), COMPARE_UNIFORM);
    compare_output(array_layout(i, layout), 0.0f);
    kernel(dy, w, compare_actual(), f->n, s);
    ref->dx(dy, w, compare_expected(), f->n, s);
    compare_make_magnitudes();
    ref->dx(dy, w, compare_magnitudes(), f->n, s);
    compare_check(f, s->kh * s->kw * (s->o / s->groups), print_case);
}

static void dw(const compare_row *row, const family *ref, const images *i, image_layout layout,
               compare_attributes *f) {
    ag_conv2d_dw_f32_fn *kernel = (ag_conv2d_dw_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    for (int32_t k = 0; k < COMPARE_SCALES; k++) {
        f->alpha = compare_scales[k][0];
        f->beta = compare_scales[k][1];
        if (!compare_matches(row, f)) {
            continue;
        }
        const float *x = compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
        const float *dy = compare_input(1, results_of(s, f->n), COMPARE_UNIFORM);
        compare_output(weights_of(s), f->beta);
        kernel(x, dy, compare_actual(), f->n, s, f->alpha, f->beta);
        ref->dw(x, dy, compare_expected(), f->n, s, f->alpha, f->beta);
        compare_make_magnitudes();
        ref->dw(x, dy, compare_magnitudes(), f->n, s, 1.0f, 0.0f);
        compare_check(f, f->n * s->oh * s->ow, print_case);
    }
}

COMPARE_CASES(conv2d_f32) {
    all(row, forward, &conv2d);
}

COMPARE_CASES(conv2d_dx_f32) {
    all(row, dx, &conv2d);
}

COMPARE_CASES(conv2d_dw_f32) {
    all(row, dw, &conv2d);
}

COMPARE_CASES(depthwise2d_f32) {
    all(row, forward, &depthwise2d);
}

COMPARE_CASES(depthwise2d_dx_f32) {
    all(row, dx, &depthwise2d);
}

COMPARE_CASES(depthwise2d_dw_f32) {
    all(row, dw, &depthwise2d);
}
