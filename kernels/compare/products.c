/* gemm, gemv, gemv transposed, ger, axpby and sums of columns over sizes, leading dimensions, alpha and beta.
 */
#include "compare.h"

typedef void cases_of(const compare_row *row, compare_attributes *attributes);

static void gemm(const compare_row *row, compare_attributes *f, ag_gemm_f32_fn *ref, bool ta, bool tb) {
    ag_gemm_f32_fn *kernel = (ag_gemm_f32_fn *)row->function;
    const int32_t m = f->m, n = f->n, k = f->k, slack = f->lda;
    f->lda = (ta ? m : k) + slack;
    f->ldb = (tb ? k : n) + slack;
    f->ldc = n + slack;
    if (!compare_matches(row, f)) {
        return;
    }
    const compare_values values = m * n == 1 && k >= 1000 ? COMPARE_SMALL : COMPARE_UNIFORM;
    compare_input(0, compare_matrix(ta ? k : m, ta ? m : k, f->lda), values);
    compare_input(1, compare_matrix(tb ? n : k, tb ? k : n, f->ldb), values);
    compare_output(compare_matrix(m, n, f->ldc), f->beta);
    compare_draw_epilogue(f, n, compare_matrix(m, n, f->ldc));
    for (compare_call c = compare_sums(k); compare_next(&c, f);) {
        (c.of_ref ? ref : kernel)(c.in[0], f->lda, c.in[1], f->ldb, c.out, f->ldc, m, n, k, c.alpha, c.beta,
                                  c.epilogue);
    }
}

static void gemm_nn(const compare_row *row, compare_attributes *f) {
    gemm(row, f, ag_gemm_nn_f32_ref, false, false);
}

static void gemm_nt(const compare_row *row, compare_attributes *f) {
    gemm(row, f, ag_gemm_nt_f32_ref, false, true);
}

static void gemm_tn(const compare_row *row, compare_attributes *f) {
    gemm(row, f, ag_gemm_tn_f32_ref, true, false);
}

static void gemm_tt(const compare_row *row, compare_attributes *f) {
    gemm(row, f, ag_gemm_tt_f32_ref, true, true);
}

static void product(const compare_row *row, compare_attributes *f, ag_gemv_f32_fn *ref, bool transposed) {
    ag_gemv_f32_fn *kernel = (ag_gemv_f32_fn *)row->function;
    const int32_t m = f->m, n = f->n;
    f->lda += n;
    if (!compare_matches(row, f)) {
        return;
    }
    compare_input(0, compare_matrix(m, n, f->lda), COMPARE_UNIFORM);
    compare_input(1, compare_dense(transposed ? m : n), COMPARE_UNIFORM);
    compare_output(compare_dense(transposed ? n : m), f->beta);
    compare_draw_epilogue(f, transposed ? n : m, compare_dense(transposed ? n : m));
    for (compare_call c = compare_sums(transposed ? m : n); compare_next(&c, f);) {
        (c.of_ref ? ref : kernel)(c.in[0], f->lda, c.in[1], c.out, m, n, c.alpha, c.beta, c.epilogue);
    }
}

static void gemv(const compare_row *row, compare_attributes *f) {
    product(row, f, ag_gemv_f32_ref, false);
}

static void gemv_t(const compare_row *row, compare_attributes *f) {
    product(row, f, ag_gemv_t_f32_ref, true);
}

static void ger(const compare_row *row, compare_attributes *f) {
    ag_ger_f32_fn *kernel = (ag_ger_f32_fn *)row->function;
    const int32_t m = f->m, n = f->n;
    f->lda += n;
    if (!compare_matches(row, f)) {
        return;
    }
    compare_input(0, compare_dense(m), COMPARE_UNIFORM);
    compare_input(1, compare_dense(n), COMPARE_UNIFORM);
    compare_output(compare_matrix(m, n, f->lda), f->beta);
    for (compare_call c = compare_sums(1); compare_next(&c, f);) {
        (c.of_ref ? ag_ger_f32_ref : kernel)(c.out, f->lda, c.in[0], c.in[1], m, n, c.alpha, c.beta);
    }
}

static void axpby(const compare_row *row, compare_attributes *f) {
    ag_axpby_f32_fn *kernel = (ag_axpby_f32_fn *)row->function;
    const int32_t n = f->n;
    if (!compare_matches(row, f)) {
        return;
    }
    compare_input(0, compare_dense(n), COMPARE_UNIFORM);
    compare_output(compare_dense(n), f->beta);
    for (compare_call c = compare_sums(1); compare_next(&c, f);) {
        (c.of_ref ? ag_axpby_f32_ref : kernel)(c.in[0], c.out, n, c.alpha, c.beta);
    }
}

static void column_sums(const compare_row *row, compare_attributes *f) {
    ag_column_sums_f32_fn *kernel = (ag_column_sums_f32_fn *)row->function;
    const int32_t m = f->m, n = f->n;
    f->lda += n;
    if (!compare_matches(row, f)) {
        return;
    }
    compare_input(0, compare_matrix(m, n, f->lda), COMPARE_UNIFORM);
    compare_output(compare_dense(n), f->beta);
    for (compare_call c = compare_sums(m); compare_next(&c, f);) {
        (c.of_ref ? ag_column_sums_f32_ref : kernel)(c.in[0], f->lda, c.out, m, n, c.alpha, c.beta);
    }
}

/* `slack`: elements between two rows; `epilogue`: whether there is one. */
static void once(const compare_row *row, cases_of *one, int32_t m, int32_t n, int32_t k, int32_t slack,
                 float alpha, float beta, int32_t epilogue) {
    compare_attributes attributes = {0};
    attributes.epilogue = epilogue;
    attributes.m = m;
    attributes.n = n;
    attributes.k = k;
    attributes.lda = slack;
    attributes.alpha = alpha;
    attributes.beta = beta;
    one(row, &attributes);
}

/* Pairs of a size, a scale and a slack, then every small size. */
static void all(const compare_row *row, cases_of *one) {
    static const int32_t slacks[] = {0, 3, 4};
    static const float scales[][2] = {{1.0f, 0.0f},  {1.0f, 1.0f}, {-0.01f, 1.0f},
                                      {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};
    static const int32_t sizes[][3] = {{1, 1, 1},  {1, 7, 1},   {5, 1, 3},   {2, 3, 4},    {4, 4, 4},
                                       {7, 5, 9},  {8, 16, 2},  {5, 17, 6},  {13, 17, 11}, {10, 32, 1},
                                       {3, 33, 7}, {6, 21, 16}, {8, 64, 16}, {16, 24, 32}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            once(row, one, sizes[i][0], sizes[i][1], sizes[i][2], slacks[(i + s) % 3u], scales[s][0],
                 scales[s][1], 0);
        }
    }
    for (int32_t m = 1; m <= 9; m++) {
        for (int32_t n = 1; n <= 20; n++) {
            once(row, one, m, n, (m + n) % 7 + 1, n % 3, 0.7f, (float)((m * n) % 3) * 0.5f, 0);
        }
    }
}

/* Also with epilogues. */
static void all_products(const compare_row *row, cases_of *one) {
    all(row, one);
    for (int32_t m = 1; m <= 9; m++) {
        for (int32_t n = 1; n <= 20; n++) {
            once(row, one, m, n, (m + n) % 7 + 1, n % 3, n % 4 == 0 ? 0.7f : 1.0f, 0.0f, 1);
        }
    }
    for (int32_t i = 0; i < 32; i++) {
        once(row, one, 12 + i % 2, 17 - i % 3, 5, i % 2, 1.0f, 0.0f, 1);
    }
}

/* Also a sum that must be complete before the output is read, and matrices of several blocks. */
static void all_gemm(const compare_row *row, cases_of *one) {
    all_products(row, one);
    once(row, one, 1, 1, 1000, 0, 1.0f, 1.0f, 0);
#if COMPARE_FLOATS >= COMPARE_LARGE
    static const int32_t large[][3] = {
        {3, 33, 70},    {19, 47, 41}, {40, 100, 60}, {9, 21, 300}, {130, 7, 30},
#if COMPARE_FLOATS >= COMPARE_HOST
        {100, 20, 150},
#endif
    };
    for (uint32_t i = 0; i < sizeof large / sizeof *large; i++) {
        const int32_t slack = i % 2u == 0u ? 3 : 0, other = 3 - slack;
        once(row, one, large[i][0], large[i][1], large[i][2], slack, 0.7f, 0.5f, 0);
        once(row, one, large[i][0], large[i][1], large[i][2], other, 1.0f, 0.0f, 0);
        once(row, one, large[i][0], large[i][1], large[i][2], slack, 1.0f, 0.0f, 1);
    }
#endif
}

COMPARE_CASES_OF(gemm_nn_f32, all_gemm, gemm_nn)
COMPARE_CASES_OF(gemm_nt_f32, all_gemm, gemm_nt)
COMPARE_CASES_OF(gemm_tn_f32, all_gemm, gemm_tn)
COMPARE_CASES_OF(gemm_tt_f32, all_gemm, gemm_tt)
COMPARE_CASES_OF(gemv_f32, all_products, gemv)
COMPARE_CASES_OF(gemv_t_f32, all_products, gemv_t)
COMPARE_CASES_OF(ger_f32, all, ger)
COMPARE_CASES_OF(axpby_f32, all, axpby)

COMPARE_CASES(column_sums_f32) {
    all(row, column_sums);
    static const int32_t long_sums[][2] = {{64, 17}, {65, 17}, {66, 16}, {129, 1}, {130, 8}, {193, 5}};
    for (uint32_t i = 0; i < sizeof long_sums / sizeof *long_sums; i++) {
        once(row, column_sums, long_sums[i][0], long_sums[i][1], 1, 1, 0.7f, 0.5f, 0);
    }
}
