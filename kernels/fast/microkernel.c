/* The micro-kernels of tiles/microkernel.h in portable C: sixteen sums, which the compiler keeps in
 * registers, from four elements of A and four of B at a time. */
#include "tiles/microkernel.h"

/* four elements of A and of B, one k */
typedef struct {
    float v[4];
} four;

typedef struct {
    float v[4][4];
} sums;

static inline const float *advance(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

static inline four load_contiguous(const float **p, int32_t step) {
    const four f = {{(*p)[0], (*p)[1], (*p)[2], (*p)[3]}};
    *p = advance(*p, step);
    return f;
}

/* element k of each of four rows */
static inline four load_strided(const float *const p[4], int32_t k) {
    const four f = {{p[0][k], p[1][k], p[2][k], p[3][k]}};
    return f;
}

static inline void skip(const float *p[4], int32_t bytes) {
    for (int32_t i = 0; i < 4; i++) {
        p[i] = advance(p[i], bytes);
    }
}

static inline void add_products(sums *s, four a, four b) {
    for (int32_t i = 0; i < 4; i++) {
        for (int32_t j = 0; j < 4; j++) {
            s->v[i][j] += a.v[i] * b.v[j];
        }
    }
}

static inline void store_tile(const ag_tile *t, const sums *s) {
    float *row = t->c;
    for (int32_t i = 0; i < 4; i++) {
        for (int32_t j = 0; j < 4; j++) {
            const float sum = t->alpha * s->v[i][j];
            row[j] = t->beta == 0.0f ? sum : sum + t->beta * row[j];
        }
        row = (float *)(void *)((char *)row + t->c_step);
    }
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    const float *a[4] = {t->a[0], t->a[1], t->a[2], t->a[3]}, *b = t->b[0];
    const int32_t depth = t->k, step = t->b_step;
    const int32_t a_skip = t->a_skip + depth * (int32_t)sizeof(float);
    sums s = {{{0.0f}}};
    for (int32_t run = t->k_runs; run > 0; run--) {
        for (int32_t k = 0; k < depth; k++) {
            add_products(&s, load_strided(a, k), load_contiguous(&b, step));
        }
        skip(a, a_skip);
        b = advance(b, t->b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    const float *a[4] = {t->a[0], t->a[1], t->a[2], t->a[3]};
    const float *b[4] = {t->b[0], t->b[1], t->b[2], t->b[3]};
    const int32_t depth = t->k, row = depth * (int32_t)sizeof(float);
    const int32_t a_skip = t->a_skip + row, b_skip = t->b_skip + row;
    sums s = {{{0.0f}}};
    for (int32_t run = t->k_runs; run > 0; run--) {
        for (int32_t k = 0; k < depth; k++) {
            add_products(&s, load_strided(a, k), load_strided(b, k));
        }
        skip(a, a_skip);
        skip(b, b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    const float *a = t->a[0], *b = t->b[0];
    const int32_t a_step = t->a_step, b_step = t->b_step;
    sums s = {{{0.0f}}};
    for (int32_t run = t->k_runs; run > 0; run--) {
        for (int32_t k = t->k; k > 0; k--) {
            add_products(&s, load_contiguous(&a, a_step), load_contiguous(&b, b_step));
        }
        a = advance(a, t->a_skip);
        b = advance(b, t->b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    const float *a = t->a[0], *b[4] = {t->b[0], t->b[1], t->b[2], t->b[3]};
    const int32_t a_step = t->a_step, b_step = t->b_step;
    sums s = {{{0.0f}}};
    for (int32_t run = t->k_runs; run > 0; run--) {
        for (int32_t k = t->k; k > 0; k--) {
            const four f = {{*b[0], *b[1], *b[2], *b[3]}};
            add_products(&s, load_contiguous(&a, a_step), f);
            skip(b, b_step);
        }
        a = advance(a, t->a_skip);
        skip(b, t->b_skip);
    }
    store_tile(t, &s);
}
