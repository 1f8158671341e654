/* Convolution with pooling: one group, results and dx without gaps. */
#include "images.h"

static const int32_t pools[][4] = {{2, 2, 2, 2}, {1, 1, 1, 1}, {1, 2, 3, 2}, {2, 3, 2, 3}, {3, 3, 3, 3}};

static ag_conv2d_pool_shape pooled(const images *i, const int32_t *pool, image_layout layout) {
    const ag_conv2d_shape c = shape_of(i, layout);
    ag_conv2d_pool_shape s;
    s.h = c.h;
    s.w = c.w;
    s.c = c.c;
    s.oh = c.oh;
    s.ow = c.ow;
    s.o = c.o;
    s.kh = c.kh;
    s.kw = c.kw;
    s.stride_h = c.stride_h;
    s.stride_w = c.stride_w;
    s.pad_top = c.pad_top;
    s.pad_left = c.pad_left;
    s.dilation_h = c.dilation_h;
    s.dilation_w = c.dilation_w;
    s.x_n = c.x_n;
    s.x_h = c.x_h;
    s.x_w = c.x_w;
    s.x_c = c.x_c;
    s.pool_h = pool[0];
    s.pool_w = pool[1];
    s.pool_stride_h = pool[2];
    s.pool_stride_w = pool[3];
    s.ph = (s.oh + s.pool_stride_h - 1) / s.pool_stride_h; /* the last window may extend past the end */
    s.pw = (s.ow + s.pool_stride_w - 1) / s.pool_stride_w;
    return s;
}

typedef void pooled_cases_of(const compare_row *row, const images *i, image_layout layout,
                             compare_attributes *f);

/* Every image with every window in the first `layouts`; scales in turn. */
static void all_pooled(const compare_row *row, pooled_cases_of *one, uint32_t layouts) {
    const uint32_t rows = sizeof convolutions / sizeof *convolutions;
    for (uint32_t i = 0; i < rows + COMPARE_RANDOM; i++) {
        const images image = image_at(convolutions, rows, i);
        for (uint32_t k = 0; k < sizeof pools / sizeof *pools; k++) {
            for (uint32_t l = 0; l < layouts; l++) {
                const float *scale = compare_scales[(i + k + l) % COMPARE_SCALES];
                compare_attributes f = {.n = image.n, .alpha = scale[0], .beta = scale[1]};
                f.conv2d_pool_shape = pooled(&image, pools[k], (image_layout)l);
                if (image.groups == 1) {
                    one(row, &image, (image_layout)l, &f);
                }
            }
        }
    }
}

static compare_layout pooled_weights(const ag_conv2d_pool_shape *s) {
    return compare_dense(s->o * s->kh * s->kw * s->c);
}

static compare_layout pooled_results(const compare_attributes *f) {
    const ag_conv2d_pool_shape *s = &f->conv2d_pool_shape;
    return compare_dense(f->n * s->ph * s->pw * s->o);
}

/* Sums are exact here, so that rounding does not decide which element of a window is the first maximum. */
static void pool(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_conv2d_pool_f32_fn *kernel = (ag_conv2d_pool_f32_fn *)row->function;
    const ag_conv2d_pool_shape *s = &f->conv2d_pool_shape;
    f->alpha = 1.0f;
    f->beta = 0.0f;
    for (int32_t values = COMPARE_EIGHTHS; values <= COMPARE_NANS; values++) {
        if (!compare_matches(row, f)) {
            continue;
        }
        compare_input(0, array_layout(i, layout), (compare_values)values);
        compare_input(1, pooled_weights(s), COMPARE_EIGHTHS);
        compare_input(2, compare_dense(s->o), COMPARE_EIGHTHS);
        compare_output(pooled_results(f), 0.0f);
        for (compare_call c = compare_exactly(); compare_next(&c, f);) {
            (c.of_ref ? ag_conv2d_pool_f32_ref : kernel)(c.in[0], c.in[1], c.in[2], c.out, c.index, f->n, s);
        }
    }
}

/* Indices from ref's convolution of other values, so that all are valid. */
static const uint8_t *valid_index(const images *i, image_layout layout, const compare_attributes *f) {
    const ag_conv2d_pool_shape *s = &f->conv2d_pool_shape;
    const float *x = compare_input(0, array_layout(i, layout), COMPARE_EIGHTHS);
    const float *w = compare_input(1, pooled_weights(s), COMPARE_EIGHTHS);
    const float *bias = compare_input(2, compare_dense(s->o), COMPARE_EIGHTHS);
    compare_output(pooled_results(f), 0.0f);
    ag_conv2d_pool_f32_ref(x, w, bias, compare_actual(), compare_input_index(), f->n, s);
    return compare_input_index();
}

static void pool_dx(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_conv2d_pool_dx_f32_fn *kernel = (ag_conv2d_pool_dx_f32_fn *)row->function;
    const ag_conv2d_pool_shape *s = &f->conv2d_pool_shape;
    f->alpha = 1.0f;
    f->beta = 0.0f;
    if (!compare_matches(row, f)) {
        return;
    }
    const uint8_t *index = valid_index(i, layout, f);
    compare_input(0, pooled_results(f), COMPARE_UNIFORM);
    compare_input(1, pooled_weights(s), COMPARE_UNIFORM);
    compare_output(array_layout(i, layout), 0.0f);
    for (compare_call c = compare_sums(s->kh * s->kw * s->o); compare_next(&c, f);) {
        (c.of_ref ? ag_conv2d_pool_dx_f32_ref : kernel)(c.in[0], index, c.in[1], c.out, f->n, s);
    }
}

static void pool_dw(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_conv2d_pool_dw_f32_fn *kernel = (ag_conv2d_pool_dw_f32_fn *)row->function;
    const ag_conv2d_pool_shape *s = &f->conv2d_pool_shape;
    if (!compare_matches(row, f)) {
        return;
    }
    const uint8_t *index = valid_index(i, layout, f);
    compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
    compare_input(1, pooled_results(f), COMPARE_UNIFORM);
    compare_output(pooled_weights(s), f->beta);
    for (compare_call c = compare_sums(f->n * s->ph * s->pw); compare_next(&c, f);) {
        (c.of_ref ? ag_conv2d_pool_dw_f32_ref : kernel)(c.in[0], c.in[1], index, c.out, f->n, s, c.alpha,
                                                        c.beta);
    }
}

COMPARE_CASES_OF(conv2d_pool_f32, all_pooled, pool, LAYOUTS)
COMPARE_CASES_OF(conv2d_pool_dx_f32, all_pooled, pool_dx, 1) /* whose dx has no gaps */
COMPARE_CASES_OF(conv2d_pool_dw_f32, all_pooled, pool_dw, LAYOUTS)
