/* Convolution and depthwise convolution: strides, padding, dilation, groups, and images with gaps between
 * elements. */
#include "images.h"

/* An operation and its adjoints in `ref`, and the tested images. */
typedef struct family {
    ag_conv2d_f32_fn *forward;
    ag_conv2d_dx_f32_fn *dx;
    ag_conv2d_dw_f32_fn *dw;
    const images *table;
    uint32_t rows;
    const images *wide; /* on the host */
    uint32_t wide_rows;
} family;

static const images wide_convolutions[] = {
    {1, 8, 9, 9, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},   {2, 9, 7, 8, 8, 3, 3, 1, 1, 2, 0, 1, 2, 1, 1, 1},
    {1, 8, 8, 70, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},  {1, 9, 8, 8, 35, 3, 3, 1, 1, 0, 1, 0, 1, 1, 1, 1},
    {1, 8, 8, 33, 100, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
};
static const family conv2d = {
    ag_conv2d_f32_ref,
    ag_conv2d_dx_f32_ref,
    ag_conv2d_dw_f32_ref,
    convolutions,
    sizeof convolutions / sizeof *convolutions,
    wide_convolutions,
    COMPARE_FLOATS >= COMPARE_HOST ? sizeof wide_convolutions / sizeof *wide_convolutions : 0};
static const family depthwise2d = {ag_depthwise2d_f32_ref,
                                   ag_depthwise2d_dx_f32_ref,
                                   ag_depthwise2d_dw_f32_ref,
                                   depthwise,
                                   sizeof depthwise / sizeof *depthwise,
                                   NULL,
                                   0};

typedef void cases_of(const compare_row *row, const family *ref, const images *i, image_layout layout,
                      compare_attributes *f);

/* Every image in each layout, with the first `scales` of compare_scales, and with as many epilogues: pairs of
 * these, not all combinations. */
static void all(const compare_row *row, cases_of *one, const family *ref, int32_t scales, int32_t epilogues) {
    const uint32_t named = ref->rows + ref->wide_rows;
    for (uint32_t i = 0; i < named + COMPARE_RANDOM; i++) {
        const uint32_t k_of_table = i < ref->rows ? i : i - ref->wide_rows;
        const bool wide = i >= ref->rows && i < named;
        const images image = wide ? ref->wide[i - ref->rows] : image_at(ref->table, ref->rows, k_of_table);
        const int32_t plain = scales > LAYOUTS ? scales : LAYOUTS;
        for (int32_t k = 0; k < plain + epilogues; k++) {
            const image_layout layout = (image_layout)((i + (uint32_t)k) % (uint32_t)LAYOUTS);
            compare_attributes f = {.n = image.n, .conv2d_shape = shape_of(&image, layout)};
            f.epilogue = k < plain ? 0 : 1;
            f.alpha = compare_scales[f.epilogue ? 0 : k % scales][0];
            f.beta = compare_scales[f.epilogue ? 0 : k % scales][1];
            if (compare_matches(row, &f)) {
                one(row, ref, &image, layout, &f);
            }
        }
    }
}

static void forward(const compare_row *row, const family *ref, const images *i, image_layout layout,
                    compare_attributes *f) {
    ag_conv2d_f32_fn *kernel = (ag_conv2d_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
    compare_input(1, weights_of(s), COMPARE_UNIFORM);
    compare_output(results_of(s, f->n), 0.0f);
    compare_draw_epilogue(f, s->o, results_of(s, f->n));
    for (compare_call c = compare_sums(s->kh * s->kw * (s->c / s->groups)); compare_next(&c, f);) {
        (c.of_ref ? ref->forward : kernel)(c.in[0], c.in[1], c.out, f->n, s, c.epilogue);
    }
}

static void dx(const compare_row *row, const family *ref, const images *i, image_layout layout,
               compare_attributes *f) {
    ag_conv2d_dx_f32_fn *kernel = (ag_conv2d_dx_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_input(0, results_of(s, f->n), COMPARE_UNIFORM);
    compare_input(1, weights_of(s), COMPARE_UNIFORM);
    compare_output(array_layout(i, layout), 0.0f);
    for (compare_call c = compare_sums(s->kh * s->kw * (s->o / s->groups)); compare_next(&c, f);) {
        (c.of_ref ? ref->dx : kernel)(c.in[0], c.in[1], c.out, f->n, s);
    }
}

static void dw(const compare_row *row, const family *ref, const images *i, image_layout layout,
               compare_attributes *f) {
    ag_conv2d_dw_f32_fn *kernel = (ag_conv2d_dw_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    const compare_values values = s->oh * s->ow >= 1000 ? COMPARE_SMALL : COMPARE_UNIFORM;
    compare_input(0, array_layout(i, layout), values);
    compare_input(1, results_of(s, f->n), values);
    compare_output(weights_of(s), f->beta);
    for (compare_call c = compare_sums(f->n * s->oh * s->ow); compare_next(&c, f);) {
        (c.of_ref ? ref->dw : kernel)(c.in[0], c.in[1], c.out, f->n, s, c.alpha, c.beta);
    }
}

/* Also a sum that must be complete before the weight is read. */
static void all_dw(const compare_row *row, const family *ref) {
    static const images many_pixels = {1, 32, 32, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
    compare_attributes f = {.n = 1, .alpha = 1.0f, .beta = 1.0f};
    f.conv2d_shape = shape_of(&many_pixels, DENSE);
    all(row, dw, ref, COMPARE_SCALES, 0);
    if (compare_matches(row, &f)) {
        dw(row, ref, &many_pixels, DENSE, &f);
    }
}

/* The same of integers, against `ref` of floats. */
static void dx_of_s8(const compare_row *row, const family *ref, const images *i, image_layout layout,
                     compare_attributes *f) {
    ag_conv2d_dx_f32_s8_fn *kernel = (ag_conv2d_dx_f32_s8_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_input(0, results_of(s, f->n), COMPARE_UNIFORM);
    compare_input_s8(1, weights_of(s), false);
    compare_input_of_s8(2, 1, weights_of(s), 0);
    compare_output(array_layout(i, layout), 0.0f);
    for (compare_call c = compare_sums(s->kh * s->kw * (s->o / s->groups)); compare_next(&c, f);) {
        if (c.of_ref) {
            ref->dx(c.in[0], c.in[2], c.out, f->n, s);
        } else {
            kernel(c.in[0], c.in_s8[1], c.out, f->n, c.scratch, s);
        }
    }
}

static void dw_of_s8(const compare_row *row, const family *ref, const images *i, image_layout layout,
                     compare_attributes *f) {
    ag_conv2d_dw_s8_f32_fn *kernel = (ag_conv2d_dw_s8_f32_fn *)row->function;
    const ag_conv2d_shape *s = &f->conv2d_shape;
    compare_input_s8(0, array_layout(i, layout), false);
    f->x_zero = i->c % 2 == 0 ? -128 : 5;
    compare_input(1, results_of(s, f->n), COMPARE_UNIFORM);
    compare_input_of_s8(2, 0, array_layout(i, layout), f->x_zero);
    compare_output(weights_of(s), f->beta);
    for (compare_call c = compare_sums(f->n * s->oh * s->ow); compare_next(&c, f);) {
        if (c.of_ref) {
            ref->dw(c.in[2], c.in[1], c.out, f->n, s, c.alpha, c.beta);
        } else {
            kernel(c.in_s8[0], c.in[1], c.out, f->n, f->x_zero, c.scratch, s, c.alpha, c.beta);
        }
    }
}

COMPARE_CASES_OF(conv2d_f32, all, forward, &conv2d, 1, 3)
COMPARE_CASES_OF(conv2d_dx_f32, all, dx, &conv2d, 1, 0)
COMPARE_CASES_OF(conv2d_dw_f32, all_dw, &conv2d)
COMPARE_CASES_OF(depthwise2d_f32, all, forward, &depthwise2d, 1, 3)
COMPARE_CASES_OF(depthwise2d_dx_f32, all, dx, &depthwise2d, 1, 0)
COMPARE_CASES_OF(depthwise2d_dw_f32, all_dw, &depthwise2d)
COMPARE_CASES_OF(conv2d_dx_f32_s8, all, dx_of_s8, &conv2d, 1, 0)
COMPARE_CASES_OF(conv2d_dw_s8_f32, all, dw_of_s8, &conv2d, COMPARE_SCALES, 0)
COMPARE_CASES_OF(depthwise2d_dx_f32_s8, all, dx_of_s8, &depthwise2d, 1, 0)
COMPARE_CASES_OF(depthwise2d_dw_s8_f32, all, dw_of_s8, &depthwise2d, COMPARE_SCALES, 0)
