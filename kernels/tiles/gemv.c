/* Matrix times vector: several rows at a time along x (gemv), or sums of rows with weights (gemv_t).
 *
 *     gemv:   x        [ run | run | .. | vectors | parts ]     loaded once for all rows
 *             row 0    [     |     |                      ]     -> a vector of sums, whose total is y[0]
 *              ..      [     |     |                      ]        .. */
#include "tiles/epilogue.h"
#include "tiles/helpers.h"
#include "tiles/moving_pointers.h"
#include "tiles/axpy_rows.h"
#include "tiles/row_sums.h"

/* sum[i] += the next `vectors` vectors of row i of `rows` times the same vectors of x; one row has RUN
 * independent sums. Where fewer than RUN vectors are loaded at a time, two rows are loaded together and their
 * sums alternate: a core waits for the result of the instruction before. `rows` and `vectors` are constants.
 */
ALWAYS_INLINE void ag_run_products(int32_t rows, int32_t vectors, const float **row, const float **x,
                                   vec *sum) {
    const int32_t together = vectors < RUN && rows > 1 ? 2 : 1, loads = rows / together;
    const vecs v = held_run(vectors, x);
    EACH (i, loads) {
        const ptrdiff_t first = (ptrdiff_t)together * i;
        vecs w[2];
        w[0] = next_run(vectors, &row[first]);
        w[1] = together == 1 ? w[0] : second_run(vectors, &row[first + 1]);
        EACH (e, together * vectors) {
            const int32_t q = e / together, r = e % together;
            vec *s = rows == 1 ? sum + q : sum + first + r;
            *s = plus_product(*s, w[r].val[q], v.val[q]);
        }
    }
}

/* sum[i] += row i of `rows` from a on, times x. `rows` is a constant. */
ALWAYS_INLINE void ag_row_products(int32_t rows, const float *a, ptrdiff_t lda, const float *x, int32_t n,
                                   vec *sum) {
    const float *row[GEMV_ROWS];
    const uint32_t short_run = AG_SHORT_RUN;
    uint32_t left = (uint32_t)n % (AG_GEMV_RUN * LANES);
    EACH (i, rows) {
        row[i] = a;
        a += lda;
    }
    for (uint32_t k = (uint32_t)n / (AG_GEMV_RUN * LANES); k > 0; k--) {
        ag_run_products(rows, AG_GEMV_RUN, row, &x, sum);
    }
    for (; short_run > 0 && left >= short_run; left -= short_run) {
        ag_run_products(rows, AG_SHORT_RUN, row, &x, sum);
    }
    for (uint32_t k = left / LANES; k > 0; k--) {
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

/* y = alpha * the products + beta * old, of `rows` rows, a multiple of four; with AG_SHORT_RUN, the sums
 * begin with `old`, and alpha and beta are 1. */
ALWAYS_INLINE void ag_gemv_rows(int32_t rows, const float *a, ptrdiff_t lda, const float *x, float *y,
                                const float *old, int32_t n, float alpha, float beta) {
    if (AG_SHORT_RUN > 0) {
        vecs first = load_first(rows, old);
        ag_row_products(rows, a, lda, x, n, first.val);
        put_first(rows, &y, first);
        return;
    }
    vec sum[GEMV_ROWS];
    EACH (i, rows) {
        sum[i] = zero();
    }
    ag_row_products(rows, a, lda, x, n, sum);
    EACH (i, rows / 4) {
        put_totals(y + (ptrdiff_t)4 * i, sum + (ptrdiff_t)4 * i, alpha, beta, old + (ptrdiff_t)4 * i);
    }
}

/* Takes the bias, otherwise the residual, out of an epilogue without a scale, so that sums begin with it, and
 * returns it, or NULL. What remains of the epilogue is in `rest`: *e becomes `rest`, or NULL if nothing
 * remains. */
static AG_NOINLINE const float *ag_addend_of(const ag_epilogue **e, ag_epilogue *rest) {
    *rest = **e;
    const float **const first = rest->bias != NULL ? &rest->bias : &rest->residual, *const addend = *first;
    *first = NULL;
    *e = rest->residual != NULL || rest->low < rest->high ? rest : NULL;
    return addend;
}

void AG_SYMBOL(gemv_f32)(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                         float alpha, float beta, const ag_epilogue *epilogue) {
    const float *old = y;
    const int32_t rows = m;
    ptrdiff_t each = 1; /* elements of `old` that belong to an element of y */
    ag_epilogue rest;
    if (epilogue != NULL && epilogue->scale == NULL && beta == 0.0f) {
        const float *const addend = ag_addend_of(&epilogue, &rest);
        old = addend != NULL ? addend : y;
        beta = addend != NULL ? 1.0f : 0.0f;
    }
    static const float zeros[GEMV_ROWS] = {0.0f};
    if (AG_SHORT_RUN > 0 && beta == 0.0f) {
        old = zeros;
        beta = 1.0f;
        each = 0;
    }
    if (AG_SHORT_RUN == 0 || (alpha == 1.0f && beta == 1.0f)) {
        for (; m >= GEMV_ROWS;
             m -= GEMV_ROWS, a += (ptrdiff_t)GEMV_ROWS * lda, y += GEMV_ROWS, old += each * GEMV_ROWS) {
            ag_gemv_rows(GEMV_ROWS, a, lda, x, y, old, n, alpha, beta);
        }
        if (GEMV_ROWS > 4 && m >= 4) {
            ag_gemv_rows(4, a, lda, x, y, old, n, alpha, beta);
            m -= 4, a += (ptrdiff_t)4 * lda, y += 4, old += each * 4;
        }
    }
    for (; m > 0; m--, a += lda, y++, old += each) {
        vec sum[RUN];
        EACH (q, RUN) {
            sum[q] = zero();
        }
        ag_row_products(1, a, lda, x, n, sum);
        EACH (q, RUN - 1) {
            sum[0] = add(sum[0], sum[q + 1]);
        }
        *y = beta == 0.0f ? alpha * total(sum[0]) : alpha * total(sum[0]) + beta * *old;
    }
    AG_FINISH(epilogue, y - rows, rows, 1, rows);
}

enum { ADDED_ROWS = 8 }; /* whose products are added to y at a time, with AG_SHORT_RUN */

/* The next `vectors` vectors of y += the same vectors of ADDED_ROWS rows times f. */
ALWAYS_INLINE void ag_add_run(int32_t vectors, const float **row, vecs f, float **y) {
    vecs sum = load_run(vectors, *y);
    EACH (i, ADDED_ROWS) {
        const vecs v = held_run(vectors, &row[i]);
        EACH (q, vectors) {
            sum.val[q] = plus_product(sum.val[q], v.val[q], f.val[i]);
        }
    }
    put_run(vectors, y, sum);
}

/* With AG_SHORT_RUN, ADDED_ROWS rows at a time are added to y in memory, run by run. */
void AG_SYMBOL(gemv_t_f32)(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    if (AG_SHORT_RUN == 0) {
        ag_sums_of_rows(SUMS, true, a, lda, x, y, m, n, alpha, beta);
        AG_FINISH(epilogue, y, n, 1, n);
        return;
    }
    ag_epilogue rest;
    const float *addend = NULL;
    if (epilogue != NULL && epilogue->scale == NULL && beta == 0.0f) {
        addend = ag_addend_of(&epilogue, &rest);
    }
    if (addend != NULL) {
        AG_SYMBOL(axpby_f32)(addend, y, n, 1.0f, 0.0f);
    } else if (beta == 0.0f) {
        ag_zero_floats(y, n);
    } else if (beta != 1.0f) {
        AG_SYMBOL(axpby_f32)(y, y, n, beta, 0.0f);
    }
    for (; m >= ADDED_ROWS; m -= ADDED_ROWS, x += ADDED_ROWS) {
        const float *row[ADDED_ROWS];
        vecs f = load_first(ADDED_ROWS, x);
        float *to = y;
        const uint32_t short_run = AG_SHORT_RUN;
        uint32_t left = (uint32_t)n % RUN;
        EACH (i, ADDED_ROWS) {
            row[i] = a;
            a += lda;
        }
        if (alpha != 1.0f) {
            EACH (i, ADDED_ROWS) {
                f.val[i] *= alpha;
            }
        }
        for (uint32_t k = (uint32_t)n / RUN; k > 0; k--) {
            ag_add_run(RUN, row, f, &to);
        }
        for (; short_run > 0 && left >= short_run; left -= short_run) {
            ag_add_run(AG_SHORT_RUN, row, f, &to);
        }
        for (; left > 0; left--) {
            vec sum = load(to);
            EACH (i, ADDED_ROWS) {
                sum = plus_product(sum, next_vec(&row[i]), f.val[i]);
            }
            put_vec(&to, sum);
        }
    }
    for (; m > 0; m--, a += lda, x++) {
        AG_SYMBOL(axpby_f32)(a, y, n, alpha * *x, 1.0f);
    }
    AG_FINISH(epilogue, y, n, 1, n);
}
