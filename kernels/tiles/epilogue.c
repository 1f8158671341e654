/* The epilogue of a stored matrix, in blocks of columns whose scales and biases stay in registers:
 *
 *         scale, bias:   [ block 0 ][ block 1 ][rest]
 *     row 0              |    |     |          |    |
 *     row 1              |    v     |          |    |   */
#include "tiles/epilogue.h"
#include "tiles/vectors.h"

/* What is constant: the vectors of columns, whether the last one is masked, and what is done. */
typedef struct {
    int32_t vectors;
    bool partial, residual, limits;
} ag_columns;

ALWAYS_INLINE vec ag_get(ag_columns c, const float *p, int32_t v, lane_mask mask) {
    p += (ptrdiff_t)v * LANES;
    return c.partial && v == c.vectors - 1 ? load_masked(p, mask) : load(p);
}

/* The block of columns from j on, m rows. */
ALWAYS_INLINE void ag_finish_columns(ag_columns c, lane_mask mask, const ag_epilogue *e, float *y,
                                     ptrdiff_t ldy, int32_t m, int32_t j) {
    const float *residual = c.residual ? e->residual + j : NULL, low = e->low, high = e->high;
    vec scale[FINISH_VECTORS], bias[FINISH_VECTORS];
    EACH (v, c.vectors) {
        scale[v] = e->scale == NULL ? splat(1.0f) : ag_get(c, e->scale + j, v, mask);
        bias[v] = e->bias == NULL ? zero() : ag_get(c, e->bias + j, v, mask);
    }
    y += j;
    for (; m > 0; m--, y += ldy) {
        EACH (v, c.vectors) {
            vec sum = plus_product(bias[v], ag_get(c, y, v, mask), scale[v]);
            if (c.residual) {
                sum = add(sum, ag_get(c, residual, v, mask));
            }
            if (c.limits) {
                sum = between(sum, low, high);
            }
            if (c.partial && v == c.vectors - 1) {
                store_masked(y + (ptrdiff_t)v * LANES, sum, mask);
            } else {
                store(y + (ptrdiff_t)v * LANES, sum);
            }
        }
        residual += c.residual ? ldy : 0;
    }
}

ALWAYS_INLINE void ag_finish_all(bool residual, bool limits, const ag_epilogue *e, float *y, ptrdiff_t ldy,
                                 int32_t m, int32_t n) {
    const ag_columns whole = {FINISH_VECTORS, false, residual, limits}, one = {1, false, residual, limits};
    const ag_columns part = {1, true, residual, limits};
    int32_t j = 0;
    for (; j + FINISH_VECTORS * LANES <= n; j += FINISH_VECTORS * LANES) {
        ag_finish_columns(whole, first_lanes(LANES), e, y, ldy, m, j);
    }
    for (; FINISH_VECTORS > 1 && j + LANES <= n; j += LANES) {
        ag_finish_columns(one, first_lanes(LANES), e, y, ldy, m, j);
    }
    for (; LANES > 1 && j < n; j += PART) {
        ag_finish_columns(part, first_lanes(n - j), e, y, ldy, m, j);
    }
}

void AG_SYMBOL(finish)(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n) {
    const bool limits = e->low < e->high;
    if (e->residual != NULL) {
        if (limits) {
            ag_finish_all(true, true, e, y, ldy, m, n);
        } else {
            ag_finish_all(true, false, e, y, ldy, m, n);
        }
    } else if (limits) {
        ag_finish_all(false, true, e, y, ldy, m, n);
    } else {
        ag_finish_all(false, false, e, y, ldy, m, n);
    }
}
