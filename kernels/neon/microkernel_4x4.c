/* 4 x 4 micro-kernels of tiles/microkernel.h, for matrices narrower than the main tile and convolutions with
 * few channels: one register per row (nn, nt, tn) or per column (tg) of the tile. Rows of A are read four k
 * at a time, with as many rows of B, or as many elements of its four columns, which are transposed. */
#include "narrow.h"
#include "tiles/microkernel.h"
#include "vec.h"

#include <stdbool.h>

typedef enum { ROWS, COLUMNS, GATHERED } operand;

typedef struct {
    vec v[4];
} four;

ALWAYS_INLINE const float *advance(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

ALWAYS_INLINE void skip(const float *p[4], int32_t bytes) {
    EACH (i, 4) {
        p[i] = advance(p[i], bytes);
    }
}

ALWAYS_INLINE four next_of_rows(const float *p[4]) {
    const four f = {{load(p[0]), load(p[1]), load(p[2]), load(p[3])}};
    skip(p, 4 * sizeof(float));
    return f;
}

ALWAYS_INLINE four transposed(four f) {
    const float32x4x2_t low = vzipq_f32(f.v[0], f.v[2]), high = vzipq_f32(f.v[1], f.v[3]);
    const float32x4x2_t first = vzipq_f32(low.val[0], high.val[0]), last = vzipq_f32(low.val[1], high.val[1]);
    return (four){{first.val[0], first.val[1], last.val[0], last.val[1]}};
}

/* Four contiguous elements, or one of each row; moves on to the next k, `step` bytes further. */
ALWAYS_INLINE vec next_k(operand kind, const float *p[4], int32_t step) {
    vec v;
    if (kind == COLUMNS) {
        v = load(p[0]);
        p[0] = advance(p[0], step);
    } else {
        const float elements[4] = {*p[0], *p[1], *p[2], *p[3]};
        v = load(elements);
        skip(p, step);
    }
    return v;
}

/* `a` and `b` are constants. */
ALWAYS_INLINE void products(operand a_kind, operand b_kind, const ag_tile *t) {
    const float *a[4], *b[4];
    const int32_t a_step = a_kind == ROWS ? (int32_t)sizeof(float) : t->a_step;
    const int32_t b_step = b_kind == ROWS ? (int32_t)sizeof(float) : t->b_step;
    four s = {{zero(), zero(), zero(), zero()}};
    EACH (i, 4) {
        a[i] = t->a[a_kind == COLUMNS ? 0 : i];
        b[i] = t->b[b_kind == COLUMNS ? 0 : i];
    }
    for (int32_t run = t->k_runs;;) {
        int32_t k = t->k;
        for (; a_kind == ROWS && k >= 4; k -= 4) {
            four columns = {{zero(), zero(), zero(), zero()}};
            if (b_kind == ROWS) {
                columns = transposed(next_of_rows(b));
            }
            const four rows = next_of_rows(a);
            EACH (p, 4) {
                const vec v = b_kind == ROWS ? columns.v[p] : next_k(b_kind, b, b_step);
                EACH (i, 4) {
                    s.v[i] = plus(s.v[i], v, rows.v[i], p);
                }
            }
        }
        for (; k > 0; k--) {
            if (a_kind == ROWS) {
                const vec v = next_k(b_kind, b, b_step);
                EACH (i, 4) {
                    s.v[i] = vmlaq_n_f32(s.v[i], v, *a[i]++);
                }
            } else if (b_kind == COLUMNS) {
                const vec v = next_k(b_kind, b, b_step), w = next_k(a_kind, a, a_step);
                EACH (i, 4) {
                    s.v[i] = plus(s.v[i], v, w, i);
                }
            } else {
                const vec w = next_k(a_kind, a, a_step);
                EACH (j, 4) {
                    s.v[j] = vmlaq_n_f32(s.v[j], w, *b[j]);
                }
                skip(b, b_step);
            }
        }
        if (--run == 0) {
            break;
        }
        skip(a, t->a_skip);
        skip(b, t->b_skip);
    }
    if (b_kind == GATHERED) {
        s = transposed(s);
    }
    EACH (i, 4) {
        scale_add4((float *)(void *)((char *)t->c + (ptrdiff_t)i * t->c_step), s.v[i], t->alpha, t->beta);
    }
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    products(ROWS, COLUMNS, t);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    products(ROWS, ROWS, t);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    products(COLUMNS, COLUMNS, t);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    products(COLUMNS, GATHERED, t);
}
