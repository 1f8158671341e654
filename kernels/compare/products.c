/* gemm, gemv, gemv transposed, ger, axpby and sums of columns over sizes, leading dimensions, alpha and beta;
 * products and softmax of quantised matrices. */
#include "compare.h"

/* `slack`: elements between two rows; `epilogue`: whether there is one, of the columns of the result. */
static void once(const compare_row *row, const char *sizes, char terms, int32_t m, int32_t n, int32_t k,
                 int32_t slack, float alpha, float beta, int32_t epilogue) {
    compare_attributes f = {.m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .sizes = sizes};
    int32_t columns = 0;
    for (const char *p = sizes; *p != '\0'; p++) {
        if (*p >= 'k' && *p <= 'n') {
            columns = compare_size(&f, *p);
        }
        f.lda = *p == 'A' ? columns + slack : f.lda;
        f.ldb = *p == 'B' ? columns + slack : f.ldb;
        f.ldc = *p == 'C' ? columns + slack : f.ldc;
    }
    f.terms = compare_size(&f, terms);
    f.values = m * n == 1 && k >= 1000 ? COMPARE_SMALL : COMPARE_UNIFORM;
    f.epilogue = epilogue;
    f.channels = columns;
    compare_case(row, &f);
}

/* Every size with every scale, with slacks in turn; then every small size. */
static void all(const compare_row *row, const char *sizes, char terms) {
    static const int32_t slacks[] = {0, 3, 4};
    static const float scales[][2] = {{1.0f, 0.0f},  {1.0f, 1.0f}, {-0.01f, 1.0f},
                                      {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};
    static const int32_t extents[][3] = {{1, 1, 1},  {1, 7, 1},   {5, 1, 3},   {2, 3, 4},    {4, 4, 4},
                                         {7, 5, 9},  {8, 16, 2},  {5, 17, 6},  {13, 17, 11}, {10, 32, 1},
                                         {3, 33, 7}, {6, 21, 16}, {8, 64, 16}, {16, 24, 32}};
    for (uint32_t i = 0; i < COMPARE_COUNT(extents); i++) {
        for (uint32_t s = 0; s < COMPARE_COUNT(scales); s++) {
            const int32_t *e = extents[i];
            once(row, sizes, terms, e[0], e[1], e[2], slacks[(i + s) % 3u], scales[s][0], scales[s][1], 0);
        }
    }
    for (int32_t m = 1; m <= 9; m++) {
        for (int32_t n = 1; n <= 20; n++) {
            once(row, sizes, terms, m, n, (m + n) % 7 + 1, n % 3, 0.7f, (float)((m * n) % 3) * 0.5f, 0);
        }
    }
}

/* Also with epilogues. */
static void all_products(const compare_row *row, const char *sizes, char terms) {
    all(row, sizes, terms);
    for (int32_t m = 1; m <= 9; m++) {
        for (int32_t n = 1; n <= 20; n++) {
            once(row, sizes, terms, m, n, (m + n) % 7 + 1, n % 3, n % 4 == 0 ? 0.7f : 1.0f, 0.0f, 1);
        }
    }
    for (int32_t i = 0; i < 32; i++) {
        once(row, sizes, terms, 12 + i % 2, 17 - i % 3, 5, i % 2, 1.0f, 0.0f, 1);
    }
}

/* Also a sum that must be complete before the output is read, and matrices of several blocks. */
static void all_gemm(const compare_row *row, const char *sizes) {
    all_products(row, sizes, 'k');
    once(row, sizes, 'k', 1, 1, 1000, 0, 1.0f, 1.0f, 0);
    static const int32_t large[][3] = {{3, 33, 70},    {19, 47, 41},   {40, 100, 60},
                                       {9, 21, 300},   {130, 7, 30},   {100, 20, 150},
                                       {100, 160, 40}, {130, 140, 33}, {70, 40, 300}};
    const uint32_t count = COMPARE_FLOATS >= COMPARE_HOST ? 9 : COMPARE_FLOATS >= COMPARE_LARGE ? 5 : 0;
    for (uint32_t i = 0; i < count; i++) {
        const int32_t *e = large[i], slack = i % 2u == 0u ? 3 : 0;
        once(row, sizes, 'k', e[0], e[1], e[2], slack, 0.7f, 0.5f, 0);
        once(row, sizes, 'k', e[0], e[1], e[2], 3 - slack, 1.0f, 0.0f, 0);
        once(row, sizes, 'k', e[0], e[1], e[2], slack, 1.0f, 0.0f, 1);
    }
}

static void all_column_sums(const compare_row *row) {
    static const int32_t long_sums[][2] = {{64, 17}, {65, 17}, {66, 16}, {129, 1}, {130, 8}, {193, 5}};
    all(row, "a=mnA y=n", 'm');
    for (uint32_t i = 0; i < COMPARE_COUNT(long_sums); i++) {
        once(row, "a=mnA y=n", 'm', long_sums[i][0], long_sums[i][1], 1, 1, 0.7f, 0.5f, 0);
    }
}

COMPARE_CASES(gemm_nn_f32, all_gemm(row, "a=mkA b=knB c=mnC"))
COMPARE_CASES(gemm_nt_f32, all_gemm(row, "a=mkA b=nkB c=mnC"))
COMPARE_CASES(gemm_tn_f32, all_gemm(row, "a=kmA b=knB c=mnC"))
COMPARE_CASES(gemm_tt_f32, all_gemm(row, "a=kmA b=nkB c=mnC"))
COMPARE_CASES(gemv_f32, all_products(row, "a=mnA x=n y=m", 'n'))
COMPARE_CASES(gemv_t_f32, all_products(row, "a=mnA x=m y=n", 'm'))
COMPARE_CASES(ger_f32, all(row, "a=mnA x=m y=n", '1'))
COMPARE_CASES(axpby_f32, all(row, "x=n y=n", '1'))
COMPARE_CASES(column_sums_f32, all_column_sums(row))

/* Zeros of x and y, and limits. */
void compare_encode(compare_attributes *f, uint32_t number) {
    static const int32_t encodings[][4] = {{0, 0, -128, 127},
                                           {-128, -128, -128, 127},
                                           {127, 5, -20, 50},
                                           {3, 127, -128, 126},
                                           {-7, -3, -3, 127}};
    const int32_t *e = encodings[number % COMPARE_COUNT(encodings)];
    f->x_zero = e[0];
    f->y_zero = e[1];
    f->low = e[2];
    f->high = e[3];
}

static void all_dense(const compare_row *row) {
    static const int32_t extents[][3] = {{1, 1, 1},   {1, 10, 32}, {2, 5, 17},   {3, 33, 70},
                                         {4, 16, 64}, {7, 5, 9},   {1, 20, 250}, {5, 4, 3},
                                         {9, 13, 31}, {1, 3, 4},   {6, 150, 2},  {1, 11, 47}};
    for (uint32_t i = 0; i < COMPARE_COUNT(extents); i++) {
        for (uint32_t k = 0; k < 8; k++) {
            const int32_t *e = extents[i];
            compare_attributes f = {.m = e[0], .n = e[1], .k = e[2], .sizes = "x=mk w=nk y=mn"};
            f.channels = f.n;
            f.terms = f.k;
            f.per_channel = k % 4u < 2u ? 1 : 0;
            f.small = k % 2u == 1u ? 'w' : 0;
            compare_encode(&f, i + k);
            compare_case(row, &f);
        }
    }
}

/* Scales, as multipliers and shifts, from one where all integers count to one where a single integer does. */
static void all_softmax(const compare_row *row) {
    static const int32_t extents[][2] = {{1, 1}, {3, 2}, {2, 10}, {5, 17}, {1, 33}, {1, 511}, {1, 520}};
    static const int32_t scales[][3] = {{1 << 30, 1, -255},
                                        {1374389535, 20, -1984},
                                        {1717986918, 23, -248},
                                        {INT32_MAX, 27, -15},
                                        {2013265920, 30, -1}};
    for (uint32_t i = 0; i < COMPARE_COUNT(extents); i++) {
        for (uint32_t k = 0; k < 2 * COMPARE_COUNT(scales); k++) {
            const int32_t *scale = scales[k / 2];
            compare_attributes f = {.m = extents[i][0], .n = extents[i][1], .sizes = "x=mn y=mn"};
            f.multiplier = scale[0];
            f.shift = scale[1];
            f.least = scale[2];
            f.small = k % 2 == 1 ? 'x' : 0;
            compare_case(row, &f);
        }
    }
}

COMPARE_CASES(dense_s8, all_dense(row))
COMPARE_CASES(dense_within_s8, all_dense(row))
COMPARE_CASES(softmax_s8, all_softmax(row))
