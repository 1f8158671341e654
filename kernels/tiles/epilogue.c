/* The epilogue of a stored matrix, in blocks of columns whose scales and biases stay in registers:
 *
 *         scale, bias:   [ block 0 ][ block 1 ][rest]
 *     row 0              |    |     |          |    |
 *     row 1              |    v     |          |    |   */
#include "tiles/epilogue.h"
#include "tiles/vectors.h"

#include <math.h>

/* Constants: the vectors of columns, and whether the last one is masked. */
typedef struct {
    int32_t vectors;
    bool partial;
} ag_columns;

ALWAYS_INLINE vec ag_get(ag_columns c, const float *p, int32_t v, lane_mask mask) {
    return get(c.partial, p + (ptrdiff_t)v * LANES, mask);
}

/* The block of columns from j on, m rows. */
ALWAYS_INLINE void ag_finish_columns(ag_columns c, lane_mask mask, const ag_epilogue *e, float *y,
                                     ptrdiff_t ldy, int32_t m, int32_t j) {
    const float *r = e->residual == NULL ? NULL : e->residual + j;
    const float low = e->low < e->high ? e->low : -INFINITY, high = e->low < e->high ? e->high : INFINITY;
    vec scale[FINISH_VECTORS], bias[FINISH_VECTORS];
    EACH (v, c.vectors) {
        scale[v] = e->scale == NULL ? splat(1.0f) : ag_get(c, e->scale + j, v, mask);
        bias[v] = e->bias == NULL ? zero() : ag_get(c, e->bias + j, v, mask);
    }
    y += j;
    for (; m > 0; m--, y += ldy) {
        vec sum[FINISH_VECTORS];
        EACH (v, c.vectors) {
            sum[v] = plus_product(bias[v], ag_get(c, y, v, mask), scale[v]);
        }
        if (r != NULL) {
            EACH (v, c.vectors) {
                sum[v] = add(sum[v], ag_get(c, r, v, mask));
            }
            r += ldy;
        }
        EACH (v, c.vectors) {
            put(c.partial, y + (ptrdiff_t)v * LANES, mask, between(sum[v], low, high));
        }
    }
}

void AG_SYMBOL(finish)(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n) {
    const ag_columns whole = {FINISH_VECTORS, false}, one = {1, false}, part = {1, true};
    int32_t j = 0;
    for (; j + FINISH_VECTORS * LANES <= n; j += FINISH_VECTORS * LANES) {
        ag_finish_columns(whole, first_lanes(LANES), e, y, ldy, m, j);
    }
    for (; (int32_t)PART < (int32_t)LANES && j + LANES <= n; j += LANES) {
        ag_finish_columns(one, first_lanes(LANES), e, y, ldy, m, j);
    }
    for (int32_t next; j < n; j = next) {
        next = n - j < PART ? n : j + PART;
        ag_finish_columns(part, first_lanes(next - j), e, y, ldy, m, j);
    }
}
