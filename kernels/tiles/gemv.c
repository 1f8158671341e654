/* Matrix times vector: several rows at a time along x (gemv), or sums of rows with weights (gemv_t).
 *
 *     gemv:   x        [ run | run | .. | vectors | parts ]     loaded once for all rows
 *             row 0    [     |     |                      ]     -> a vector of sums, whose total is y[0]
 *              ..      [     |     |                      ]        .. */
#include "tiles/epilogue.h"
#include "tiles/moving_pointers.h"
#include "tiles/row_sums.h"

/* sum[i] += row i of `rows` from a on, times x; one row has RUN independent sums. `rows` is a constant. */
ALWAYS_INLINE void ag_row_products(int32_t rows, const float *a, ptrdiff_t lda, const float *x, int32_t n,
                                   vec *sum) {
    const float *row[GEMV_ROWS];
    const uint32_t count = (uint32_t)n;
    EACH (i, rows) {
        row[i] = a + i * lda;
    }
    for (uint32_t k = count / (RUN * LANES); k > 0; k--) {
        const vecs v = held_run(&x);
        EACH (i, rows) {
            const vecs w = next_run(&row[i]);
            EACH (q, RUN) {
                vec *s = rows == 1 ? sum + q : sum + i;
                *s = plus_product(*s, w.val[q], v.val[q]);
            }
        }
    }
    for (uint32_t k = count % (RUN * LANES) / LANES; k > 0; k--) {
        const vec v = next_vec(&x);
        EACH (i, rows) {
            sum[i] = plus_product(sum[i], next_vec(&row[i]), v);
        }
    }
    for (int32_t rest = n & (LANES - 1); rest > 0; rest -= PART, x += PART) {
        const lane_mask mask = first_lanes(rest);
        const vec v = load_masked(x, mask);
        EACH (i, rows) {
            sum[i] = plus_product(sum[i], load_masked(row[i], mask), v);
            row[i] += PART;
        }
    }
}

/* y[rows], a multiple of four */
ALWAYS_INLINE void ag_gemv_rows(int32_t rows, const float *a, ptrdiff_t lda, const float *x, float *y,
                                int32_t n, float alpha, float beta) {
    vec sum[GEMV_ROWS];
    EACH (i, rows) {
        sum[i] = zero();
    }
    ag_row_products(rows, a, lda, x, n, sum);
    EACH (i, rows / 4) {
        put_totals(y + (ptrdiff_t)4 * i, sum + (ptrdiff_t)4 * i, alpha, beta);
    }
}

void AG_SYMBOL(gemv_f32)(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                         float alpha, float beta, const ag_epilogue *epilogue) {
    float *const first = y;
    const int32_t rows = m;
    for (; m >= GEMV_ROWS; m -= GEMV_ROWS, a += (ptrdiff_t)GEMV_ROWS * lda, y += GEMV_ROWS) {
        ag_gemv_rows(GEMV_ROWS, a, lda, x, y, n, alpha, beta);
    }
    if (GEMV_ROWS > 4 && m >= 4) {
        ag_gemv_rows(4, a, lda, x, y, n, alpha, beta);
        m -= 4, a += 4 * (ptrdiff_t)lda, y += 4;
    }
    for (; m > 0; m--, a += lda, y++) {
        vec sum[RUN];
        EACH (q, RUN) {
            sum[q] = zero();
        }
        ag_row_products(1, a, lda, x, n, sum);
        EACH (q, RUN - 1) {
            sum[0] = add(sum[0], sum[q + 1]);
        }
        *y = beta == 0.0f ? alpha * total(sum[0]) : alpha * total(sum[0]) + beta * *y;
    }
    AG_FINISH(epilogue, first, rows, 1, rows);
}

void AG_SYMBOL(gemv_t_f32)(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    ag_sums_of_rows(SUMS, true, a, lda, x, y, m, n, alpha, beta);
    AG_FINISH(epilogue, y, n, 1, n);
}
