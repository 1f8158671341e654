/* Max and average pooling, also of quantised images: overlapping windows, padding, dilation, and images with
 * gaps between elements. */
#include "image_layout.h"

typedef struct images {
    int32_t n, h, w, c, kh, kw, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right, dilation_h,
        dilation_w, divisor, count_pad;
} images;

static const images table[] = {
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0},  {1, 8, 8, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0},
    {2, 7, 5, 4, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0},  {1, 7, 7, 5, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0, 1},
    {1, 6, 9, 8, 3, 2, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0},  {1, 9, 9, 1, 3, 3, 1, 2, 1, 1, 1, 1, 2, 2, 0, 0},
    {1, 5, 5, 17, 5, 5, 5, 5, 0, 0, 0, 0, 1, 1, 0, 0}, {3, 4, 6, 2, 2, 3, 2, 3, 0, 0, 0, 0, 1, 1, 7, 0},
    {1, 6, 6, 16, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 1}, {1, 25, 5, 4, 25, 5, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0},
    {2, 7, 9, 8, 3, 3, 2, 2, 0, 0, 0, 0, 1, 1, 0, 0},  {1, 5, 5, 33, 2, 2, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0},
    {1, 8, 8, 9, 8, 8, 8, 8, 0, 0, 0, 0, 1, 1, 0, 0},  {1, 6, 6, 24, 3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 4, 1},
};

static compare_layout array_layout(const images *i, image_layout kind) {
    return image_strides(i->n, i->h, i->w, i->c, kind);
}

static compare_attributes attributes_of(const images *i, image_layout layout) {
    const compare_layout x = array_layout(i, layout);
    compare_attributes f = {0};
    ag_pool2d_shape *s = &f.pool2d_shape;
    f.n = i->n;
    f.alpha = 1.0f;
    f.low = i->c % 2 == 0 ? -128 : -50;
    f.high = i->c % 2 == 0 ? 127 : 60;
    s->h = i->h;
    s->w = i->w;
    s->c = i->c;
    s->oh = results(i->h, i->pad_top + i->pad_bottom, i->kh, i->dilation_h, i->stride_h);
    s->ow = results(i->w, i->pad_left + i->pad_right, i->kw, i->dilation_w, i->stride_w);
    s->kh = i->kh;
    s->kw = i->kw;
    s->stride_h = i->stride_h;
    s->stride_w = i->stride_w;
    s->pad_top = i->pad_top;
    s->pad_bottom = i->pad_bottom;
    s->pad_left = i->pad_left;
    s->pad_right = i->pad_right;
    s->dilation_h = i->dilation_h;
    s->dilation_w = i->dilation_w;
    s->divisor = i->divisor;
    s->count_pad = i->count_pad;
    s->x_n = x.stride[0];
    s->x_h = x.stride[1];
    s->x_w = x.stride[2];
    s->x_c = x.stride[3];
    return f;
}

static compare_layout results_of(const compare_attributes *f) {
    const ag_pool2d_shape *s = &f->pool2d_shape;
    return compare_dense(f->n * s->oh * s->ow * s->c);
}

typedef void cases_of(const compare_row *row, const images *i, image_layout layout, compare_attributes *f);

static void all(const compare_row *row, cases_of *one) {
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (int32_t l = DENSE; l <= CHANNEL_FIRST; l++) {
            compare_attributes f = attributes_of(table + i, (image_layout)l);
            if (compare_matches(row, &f)) {
                one(row, table + i, (image_layout)l, &f);
            }
        }
    }
}

/* Many elements are equal: the first of them is the maximum. */
static void largest(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_max_pool2d_f32_fn *kernel = (ag_max_pool2d_f32_fn *)row->function;
    compare_input(0, array_layout(i, layout), COMPARE_EIGHTHS);
    compare_output(results_of(f), 0.0f);
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        (c.of_ref ? ag_max_pool2d_f32_ref : kernel)(c.in[0], c.out, c.index, f->n, &f->pool2d_shape);
    }
}

/* Indices from ref with other values, so that all are valid. */
static const uint8_t *valid_index(const images *i, image_layout layout, const compare_attributes *f) {
    const float *x = compare_input(0, array_layout(i, layout), COMPARE_EIGHTHS);
    compare_output(results_of(f), 0.0f);
    ag_max_pool2d_f32_ref(x, compare_actual(), compare_input_index(), f->n, &f->pool2d_shape);
    return compare_input_index();
}

static void largest_dx(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_max_pool2d_dx_f32_fn *kernel = (ag_max_pool2d_dx_f32_fn *)row->function;
    const uint8_t *index = valid_index(i, layout, f);
    compare_input(0, results_of(f), COMPARE_UNIFORM);
    compare_output(array_layout(i, layout), 0.0f);
    for (compare_call c = compare_sums(i->kh * i->kw); compare_next(&c, f);) {
        (c.of_ref ? ag_max_pool2d_dx_f32_ref : kernel)(c.in[0], index, c.out, f->n, &f->pool2d_shape);
    }
}

static void pick(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_max_pool2d_pick_f32_fn *kernel = (ag_max_pool2d_pick_f32_fn *)row->function;
    const uint8_t *index = valid_index(i, layout, f);
    compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
    compare_output(results_of(f), 0.0f);
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        (c.of_ref ? ag_max_pool2d_pick_f32_ref : kernel)(c.in[0], index, c.out, f->n, &f->pool2d_shape);
    }
}

static void mean(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_avg_pool2d_f32_fn *kernel = (ag_avg_pool2d_f32_fn *)row->function;
    compare_input(0, array_layout(i, layout), COMPARE_UNIFORM);
    compare_output(results_of(f), 0.0f);
    for (compare_call c = compare_sums(i->kh * i->kw); compare_next(&c, f);) {
        (c.of_ref ? ag_avg_pool2d_f32_ref : kernel)(c.in[0], c.out, f->n, &f->pool2d_shape);
    }
}

static void mean_dx(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_avg_pool2d_dx_f32_fn *kernel = (ag_avg_pool2d_dx_f32_fn *)row->function;
    compare_input(0, results_of(f), COMPARE_UNIFORM);
    compare_output(array_layout(i, layout), 0.0f);
    for (compare_call c = compare_sums(i->kh * i->kw); compare_next(&c, f);) {
        (c.of_ref ? ag_avg_pool2d_dx_f32_ref : kernel)(c.in[0], c.out, f->n, &f->pool2d_shape);
    }
}

static void largest_s8(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_max_pool2d_s8_fn *kernel = (ag_max_pool2d_s8_fn *)row->function;
    const ag_pool2d_shape *s = &f->pool2d_shape;
    compare_input_s8(0, array_layout(i, layout), false);
    compare_output_s8(results_of(f));
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        (c.of_ref ? ag_max_pool2d_s8_ref : kernel)(c.in_s8[0], c.out_s8, f->n, f->low, f->high, s);
    }
}

static void mean_s8(const compare_row *row, const images *i, image_layout layout, compare_attributes *f) {
    ag_avg_pool2d_s8_fn *kernel = (ag_avg_pool2d_s8_fn *)row->function;
    const ag_pool2d_shape *s = &f->pool2d_shape;
    compare_input_s8(0, array_layout(i, layout), i->kh == 2);
    compare_output_s8(results_of(f));
    for (compare_call c = compare_exactly(); compare_next(&c, f);) {
        (c.of_ref ? ag_avg_pool2d_s8_ref : kernel)(c.in_s8[0], c.out_s8, f->n, f->low, f->high, c.scratch, s);
    }
}

COMPARE_CASES_OF(max_pool2d_f32, all, largest)
COMPARE_CASES_OF(max_pool2d_dx_f32, all, largest_dx)
COMPARE_CASES_OF(max_pool2d_pick_f32, all, pick)
COMPARE_CASES_OF(avg_pool2d_f32, all, mean)
COMPARE_CASES_OF(avg_pool2d_dx_f32, all, mean_dx)
COMPARE_CASES_OF(max_pool2d_s8, all, largest_s8)
COMPARE_CASES_OF(avg_pool2d_s8, all, mean_s8)
