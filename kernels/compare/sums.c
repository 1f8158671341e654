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
    const float *x = compare_input(0, compare_dense(count), COMPARE_UNIFORM);
    compare_output(compare_dense(f->outer * f->rows * f->inner), 0.0f);
    ag_scatter_sum_f32_ref(index, x, compare_expected(), f->outer, f->rows, f->count, f->inner);
    compare_make_magnitudes();
    ag_scatter_sum_f32_ref(index, x, compare_magnitudes(), f->outer, f->rows, f->count, f->inner);
    while (compare_next_alignment(f)) {
        kernel(index, compare_operand(0), compare_actual(), f->outer, f->rows, f->count, f->inner);
        compare_check(f, f->count);
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
        const float *x = compare_input(0, compare_dense(f->outer * f->count * f->inner), COMPARE_UNIFORM);
        compare_output(compare_dense(f->outer * f->rows * f->inner), f->beta);
        ag_index_sum_f32_ref(index, x, compare_expected(), f->outer, f->rows, f->count, f->inner, f->alpha,
                             f->beta);
        compare_make_magnitudes();
        ag_index_sum_f32_ref(index, x, compare_magnitudes(), f->outer, f->rows, f->count, f->inner, 1.0f,
                             0.0f);
        while (compare_next_alignment(f)) {
            kernel(index, compare_operand(0), compare_actual(), f->outer, f->rows, f->count, f->inner,
                   f->alpha, f->beta);
            compare_check(f, f->count);
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
        const float *x = compare_input(0, layout, COMPARE_UNIFORM);
        compare_output(layout, 0.0f);
        ag_cumsum_f32_ref(x, compare_expected(), f->outer, f->count, f->inner, f->reverse);
        compare_make_magnitudes();
        ag_cumsum_f32_ref(x, compare_magnitudes(), f->outer, f->count, f->inner, f->reverse);
        while (compare_next_alignment(f)) {
            kernel(compare_operand(0), compare_actual(), f->outer, f->count, f->inner, f->reverse);
            compare_check(f, f->count);
        }
        compare_output(layout, 1.0f); /* y is x */
        ag_cumsum_f32_ref(compare_expected(), compare_expected(), f->outer, f->count, f->inner, f->reverse);
        compare_make_magnitudes();
        ag_cumsum_f32_ref(x, compare_magnitudes(), f->outer, f->count, f->inner, f->reverse);
        while (compare_next_alignment(f)) {
            kernel(compare_actual(), compare_actual(), f->outer, f->count, f->inner, f->reverse);
            compare_check(f, f->count);
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
        const float *x = compare_input(0, compare_matrix(f->m, f->n, f->lda), COMPARE_UNIFORM);
        compare_output(compare_matrix(f->m, f->n, f->ldc), 0.0f);
        ag_copy_rows_f32_ref(x, f->lda, compare_expected(), f->ldc, f->m, f->n);
        compare_make_magnitudes();
        ag_copy_rows_f32_ref(x, f->lda, compare_magnitudes(), f->ldc, f->m, f->n);
        while (compare_next_alignment(f)) {
            kernel(compare_operand(0), f->lda, compare_actual(), f->ldc, f->m, f->n);
            compare_check(f, 1);
        }
    }
}

COMPARE_CASES_OF(scatter_sum_f32, all, scatter)
COMPARE_CASES_OF(copy_rows_f32, all, copied)
COMPARE_CASES_OF(index_sum_f32, all, by_row)
COMPARE_CASES_OF(cumsum_f32, all, running)
