/* Sums by index, cumulative sums, and copies of rows. */
#include "compare.h"

static const int32_t sizes[][4] = {{1, 1, 1, 1},  {1, 4, 9, 3},  {2, 7, 5, 4}, {3, 2, 6, 1},
                                   {1, 5, 3, 17}, {2, 3, 11, 5}, {1, 1, 8, 9}, {1, 30, 4, 16}};

typedef void cases_of(const compare_row *row, compare_attributes *f);

static void all(const compare_row *row, cases_of *one) {
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        compare_attributes f = {0};
        f.outer = sizes[i][0];
        f.rows = sizes[i][1];
        f.count = sizes[i][2];
        f.inner = sizes[i][3];
        f.alpha = 1.0f;
        one(row, &f);
    }
}

static void scatter(const compare_row *row, compare_attributes *f) {
    ag_scatter_sum_f32_fn *kernel = (ag_scatter_sum_f32_fn *)row->function;
    if (!compare_matches(row, f)) {
        return;
    }
    const int32_t count = f->outer * f->count * f->inner;
    const int32_t *index = compare_indices(count, f->rows);
    compare_input(0, compare_dense(count), COMPARE_UNIFORM);
    compare_output(compare_dense(f->outer * f->rows * f->inner), 0.0f);
    for (compare_call c = compare_sums(f->count); compare_next(&c, f);) {
        (c.of_ref ? ag_scatter_sum_f32_ref : kernel)(index, c.in[0], c.out, f->outer, f->rows, f->count,
                                                     f->inner);
    }
}

static void by_row(const compare_row *row, compare_attributes *f) {
    ag_index_sum_f32_fn *kernel = (ag_index_sum_f32_fn *)row->function;
    for (uint32_t k = 0; k < COMPARE_SCALES; k++) {
        f->alpha = compare_scales[k][0];
        f->beta = compare_scales[k][1];
        if (!compare_matches(row, f)) {
            continue;
        }
        const int32_t *index = compare_indices(f->count, f->rows);
        compare_input(0, compare_dense(f->outer * f->count * f->inner), COMPARE_UNIFORM);
        compare_output(compare_dense(f->outer * f->rows * f->inner), f->beta);
        for (compare_call c = compare_sums(f->count); compare_next(&c, f);) {
            (c.of_ref ? ag_index_sum_f32_ref : kernel)(index, c.in[0], c.out, f->outer, f->rows, f->count,
                                                       f->inner, c.alpha, c.beta);
        }
    }
}

static void running(const compare_row *row, compare_attributes *f) {
    ag_cumsum_f32_fn *kernel = (ag_cumsum_f32_fn *)row->function;
    for (f->reverse = 0; f->reverse <= 1; f->reverse++) {
        if (!compare_matches(row, f)) {
            continue;
        }
        const compare_layout layout = compare_dense(f->outer * f->count * f->inner);
        compare_input(0, layout, COMPARE_UNIFORM);
        for (int32_t in_place = 0; in_place < 2; in_place++) { /* y is x */
            compare_output(layout, (float)in_place);
            for (compare_call c = compare_sums(f->count); compare_next(&c, f);) {
                const float *x = in_place != 0 && !c.of_magnitudes ? c.out : c.in[0];
                (c.of_ref ? ag_cumsum_f32_ref : kernel)(x, c.out, f->outer, f->count, f->inner, f->reverse);
            }
        }
    }
}

static void copied(const compare_row *row, compare_attributes *f) {
    ag_copy_rows_f32_fn *kernel = (ag_copy_rows_f32_fn *)row->function;
    f->m = f->rows;
    f->n = f->count;
    for (int32_t wide = 0; wide < 2; wide++) {
        f->lda = f->n + wide * f->inner;
        f->ldc = f->n + (1 - wide) * f->inner;
        if (!compare_matches(row, f)) {
            continue;
        }
        compare_input(0, compare_matrix(f->m, f->n, f->lda), COMPARE_UNIFORM);
        compare_output(compare_matrix(f->m, f->n, f->ldc), 0.0f);
        for (compare_call c = compare_exactly(); compare_next(&c, f);) {
            (c.of_ref ? ag_copy_rows_f32_ref : kernel)(c.in[0], f->lda, c.out, f->ldc, f->m, f->n);
        }
    }
}

COMPARE_CASES_OF(scatter_sum_f32, all, scatter)
COMPARE_CASES_OF(copy_rows_f32, all, copied)
COMPARE_CASES_OF(index_sum_f32, all, by_row)
COMPARE_CASES_OF(cumsum_f32, all, running)
