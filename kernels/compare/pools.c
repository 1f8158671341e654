/* Pooling by maximum and by mean: windows that overlap, padding, dilation, and images whose elements lie
 * apart. */
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

static compare_area image_area(const images *i, order layout) {
    compare_area area = {{i->n, i->h, i->w, i->c}, {i->h * i->w * i->c, i->w * i->c, i->c, 1}};
    if (layout == APART) {
        area.stride[2] = i->c + 1;
        area.stride[1] = i->w * (i->c + 1) + 2;
        area.stride[0] = i->h * area.stride[1] + 1;
    } else if (layout == CHANNEL_FIRST) {
        area.stride[1] = i->w;
        area.stride[2] = 1;
        area.stride[3] = i->h * i->w;
    }
    return area;
}

static compare_facts facts_of(const images *i, order layout) {
    const compare_area x = image_area(i, layout);
    compare_facts f = {0};
    ag_pool2d_shape *s = &f.pool2d_shape;
    f.n = i->n;
    f.alpha = 1.0f;
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

static compare_area results_of(const compare_facts *f) {
    const ag_pool2d_shape *s = &f->pool2d_shape;
    return compare_dense(f->n * s->oh * s->ow * s->c);
}

static void say(const compare_facts *f) {
    const ag_pool2d_shape *s = &f->pool2d_shape;
    compare_say("n", f->n);
    compare_say("h", s->h);
    compare_say("w", s->w);
    compare_say("c", s->c);
    compare_say("kh", s->kh);
    compare_say("kw", s->kw);
    compare_say("stride_h", s->stride_h);
    compare_say("stride_w", s->stride_w);
    compare_say("pad_top", s->pad_top);
    compare_say("pad_left", s->pad_left);
    compare_say("dilation_h", s->dilation_h);
    compare_say("dilation_w", s->dilation_w);
    compare_say("divisor", s->divisor);
    compare_say("count_pad", s->count_pad);
    compare_say("x_w", s->x_w);
    compare_say("x_c", s->x_c);
}

typedef void cases_of(const compare_row *row, const images *i, order layout, compare_facts *f);

static void all(const compare_row *row, cases_of *one) {
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (int32_t l = DENSE; l <= CHANNEL_FIRST; l++) {
            compare_facts f = facts_of(table + i, (order)l);
            if (compare_admits(row, &f)) {
                one(row, table + i, (order)l, &f);
            }
        }
    }
}

/* Many elements are equal: the first of them counts. */
static void largest(const compare_row *row, const images *i, order layout, compare_facts *f) {
    ag_max_pool2d_f32_fn *mine = (ag_max_pool2d_f32_fn *)row->function;
    const float *x = compare_input(0, image_area(i, layout), COMPARE_EIGHTHS);
    compare_output(results_of(f), 0.0f);
    mine(x, compare_mine(), compare_my_places(), f->n, &f->pool2d_shape);
    ag_max_pool2d_f32_ref(x, compare_theirs(), compare_their_places(), f->n, &f->pool2d_shape);
    compare_check_exact(f, say);
}

/* Places that ref has chosen among other numbers, so that all are valid. */
static const uint8_t *choose(const images *i, order layout, const compare_facts *f) {
    const float *x = compare_input(0, image_area(i, layout), COMPARE_EIGHTHS);
    compare_output(results_of(f), 0.0f);
    ag_max_pool2d_f32_ref(x, compare_mine(), compare_places(), f->n, &f->pool2d_shape);
    return compare_places();
}

static void largest_dx(const compare_row *row, const images *i, order layout, compare_facts *f) {
    ag_max_pool2d_dx_f32_fn *mine = (ag_max_pool2d_dx_f32_fn *)row->function;
    const uint8_t *index = choose(i, layout, f);
    const float *dy = compare_input(0, results_of(f), COMPARE_UNIFORM);
    compare_output(image_area(i, layout), 0.0f);
    mine(dy, index, compare_mine(), f->n, &f->pool2d_shape);
    ag_max_pool2d_dx_f32_ref(dy, index, compare_theirs(), f->n, &f->pool2d_shape);
    compare_take_magnitudes();
    ag_max_pool2d_dx_f32_ref(dy, index, compare_magnitudes(), f->n, &f->pool2d_shape);
    compare_check(f, i->kh * i->kw, say);
}

static void pick(const compare_row *row, const images *i, order layout, compare_facts *f) {
    ag_max_pool2d_pick_f32_fn *mine = (ag_max_pool2d_pick_f32_fn *)row->function;
    const uint8_t *index = choose(i, layout, f);
    const float *x = compare_input(0, image_area(i, layout), COMPARE_UNIFORM);
    compare_output(results_of(f), 0.0f);
    mine(x, index, compare_mine(), f->n, &f->pool2d_shape);
    ag_max_pool2d_pick_f32_ref(x, index, compare_theirs(), f->n, &f->pool2d_shape);
    compare_check_exact(f, say);
}

static void mean(const compare_row *row, const images *i, order layout, compare_facts *f) {
    ag_avg_pool2d_f32_fn *mine = (ag_avg_pool2d_f32_fn *)row->function;
    const float *x = compare_input(0, image_area(i, layout), COMPARE_UNIFORM);
    compare_output(results_of(f), 0.0f);
    mine(x, compare_mine(), f->n, &f->pool2d_shape);
    ag_avg_pool2d_f32_ref(x, compare_theirs(), f->n, &f->pool2d_shape);
    compare_take_magnitudes();
    ag_avg_pool2d_f32_ref(x, compare_magnitudes(), f->n, &f->pool2d_shape);
    compare_check(f, i->kh * i->kw, say);
}

static void mean_dx(const compare_row *row, const images *i, order layout, compare_facts *f) {
    ag_avg_pool2d_dx_f32_fn *mine = (ag_avg_pool2d_dx_f32_fn *)row->function;
    const float *dy = compare_input(0, results_of(f), COMPARE_UNIFORM);
    compare_output(image_area(i, layout), 0.0f);
    mine(dy, compare_mine(), f->n, &f->pool2d_shape);
    ag_avg_pool2d_dx_f32_ref(dy, compare_theirs(), f->n, &f->pool2d_shape);
    compare_take_magnitudes();
    ag_avg_pool2d_dx_f32_ref(dy, compare_magnitudes(), f->n, &f->pool2d_shape);
    compare_check(f, i->kh * i->kw, say);
}

COMPARE_CASES(max_pool2d_f32) {
    all(row, largest);
}

COMPARE_CASES(max_pool2d_dx_f32) {
    all(row, largest_dx);
}

COMPARE_CASES(max_pool2d_pick_f32) {
    all(row, pick);
}

COMPARE_CASES(avg_pool2d_f32) {
    all(row, mean);
}

COMPARE_CASES(avg_pool2d_dx_f32) {
    all(row, mean_dx);
}
