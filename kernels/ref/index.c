/* Sums over elements with the same index. The sum over ascending j is complete before y is read. */
#include "ag_kernels.h"

#include <stddef.h>
#include <string.h>

void ag_scatter_sum_f32_ref(const int32_t *index, const float *x, float *y, int32_t outer, int32_t rows,
                            int32_t count, int32_t inner) {
    const ptrdiff_t block = (ptrdiff_t)rows * inner;
    for (int32_t o = 0; o < outer; o++, y += block) {
        for (ptrdiff_t k = 0; k < block; k++) {
            y[k] = 0.0f;
        }
        for (int32_t j = 0; j < count; j++, index += inner, x += inner) {
            for (int32_t i = 0; i < inner; i++) {
                y[(ptrdiff_t)index[i] * inner + i] += x[i];
            }
        }
    }
}

/* Whether entry j is the first with its index. */
static int is_first(const int32_t *index, int32_t j) {
    for (int32_t k = 0; k < j; k++) {
        if (index[k] == index[j]) {
            return 0;
        }
    }
    return 1;
}

/* y[0..width) = alpha * (the sum of all rows of x from j on whose index is index[j]) + y, for the columns
 * from `first` on. */
enum { WIDTH = 16 };

static void add_row(const int32_t *index, const float *x, float *y, int32_t j, int32_t count, int32_t inner,
                    int32_t first, float alpha) {
    const int32_t width = inner - first < WIDTH ? inner - first : WIDTH;
    float sum[WIDTH];
    for (int32_t i = 0; i < width; i++) {
        sum[i] = x[(ptrdiff_t)j * inner + first + i];
    }
    for (int32_t k = j + 1; k < count; k++) {
        if (index[k] == index[j]) {
            for (int32_t i = 0; i < width; i++) {
                sum[i] += x[(ptrdiff_t)k * inner + first + i];
            }
        }
    }
    for (int32_t i = 0; i < width; i++) {
        y[(ptrdiff_t)index[j] * inner + first + i] += alpha * sum[i];
    }
}

static void scale(float *y, ptrdiff_t count, float beta) {
    if (beta == 0.0f) {
        memset(y, 0, (size_t)count * sizeof *y);
    } else if (beta != 1.0f) {
        for (ptrdiff_t k = 0; k < count; k++) {
            y[k] *= beta;
        }
    }
}

/* y = the sums: y holds zeros, so that each row of x is read once. */
static void add_rows_to_zeros(const int32_t *index, const float *x, float *y, int32_t count, int32_t inner) {
    for (int32_t j = 0; j < count; j++, x += inner) {
        float *row = y + (ptrdiff_t)index[j] * inner;
        for (int32_t i = 0; i < inner; i++) {
            row[i] += x[i];
        }
    }
}

void ag_index_sum_f32_ref(const int32_t *index, const float *x, float *y, int32_t outer, int32_t rows,
                          int32_t count, int32_t inner, float alpha, float beta) {
    const ptrdiff_t block = (ptrdiff_t)rows * inner;
    for (int32_t o = 0; o < outer; o++, y += block, x += (ptrdiff_t)count * inner) {
        scale(y, block, beta);
        if (alpha == 1.0f && beta == 0.0f) {
            add_rows_to_zeros(index, x, y, count, inner);
            continue;
        }
        for (int32_t j = 0; j < count; j++) {
            if (is_first(index, j)) {
                for (int32_t first = 0; first < inner; first += WIDTH) {
                    add_row(index, x, y, j, count, inner, first, alpha);
                }
            }
        }
    }
}
