/* The micro-kernels of tiles/microkernel.h, for tiles of up to AG_TILE_M x AG_TILE_N sums.
 *
 *     nn, tn: vectors along the columns of C         nt: vectors along k, four columns at a time
 *
 *             b[k]: 2 vectors                                 b[0] b[1] b[2] b[3]
 *       a[0]  +------+------+                          a[0]  +----+----+----+----+
 *        ..   | sums | sums |  a[i][k] is broadcast     ..   | vectors of partial |  added up
 *       a[M]  +------+------+                          a[2]  | sums               |  at the end
 *                                                            +----+----+----+----+
 *     tg: nn of the transposed tile, whose rows are the columns of B */
#include "tiles/microkernel.h"
#include "tiles/vectors.h"

enum { VECTORS = AG_TILE_N / LANES, DOT_ROWS = LANES == 16 ? 4 : 3, DOT_COLUMNS = 4 };

/* What nn, tn and tg read: rows that are broadcast, and the first row of vectors. */
typedef struct {
    const float *a[AG_TILE_M], *b;
    ptrdiff_t a_step, b_step, a_skip, b_skip, a_next, b_next;
    int32_t blocks, runs, k;
} operands;

static inline float *row_of(const ag_tile *t, int32_t i) {
    return t->c_rows ? t->c_rows[i] + t->c_column : ag_element_after(t->c, (ptrdiff_t)i * t->c_step);
}

/* sum[i * vectors + j] += k products of row i of A, from a[i] + offset on, and vector j of the rows of B,
 * from b on; elements are a_step bytes apart, rows of B b_step. `rows`, `vectors` and `masked`, which says
 * that the last vector has the lanes of `mask`, are constants. */
ALWAYS_INLINE void add_run(int32_t rows, int32_t vectors, bool masked, lane_mask mask, const float *const *a,
                           ptrdiff_t offset, ptrdiff_t a_step, const float *b, ptrdiff_t b_step, int32_t k,
                           vec *sum) {
    for (; k > 0; k--) {
        vec v[2 * VECTORS];
        EACH (j, vectors) {
            v[j] = get(masked && j == vectors - 1, b + (ptrdiff_t)j * LANES, mask);
        }
        EACH (e, rows * vectors) {
            sum[e] += splat(*ag_after(a[e / vectors], offset)) * v[e % vectors];
        }
        offset += a_step;
        b = ag_after(b, b_step);
    }
}

/* The sums of a tile. */
ALWAYS_INLINE void broadcast_sums(int32_t rows, int32_t vectors, bool masked, int32_t last, const operands *p,
                                  vec *sum) {
    const float *a[AG_TILE_M];
    const lane_mask mask = first_lanes(last);
    vec s[AG_TILE_M * VECTORS];
    EACH (e, rows * vectors) {
        s[e] = zero();
    }
    EACH (i, rows) {
        a[i] = p->a[i];
    }
    if (LANES > 4 && p->blocks == 1 && p->runs == 1) { /* short sums: up to 20 % faster without the loops */
        add_run(rows, vectors, masked, mask, a, 0, p->a_step, p->b, p->b_step, p->k, s);
    } else {
        for (int32_t block = 0; block < p->blocks; block++) {
            const float *b = ag_after(p->b, block * p->b_next);
            ptrdiff_t offset = block * p->a_next;
            for (int32_t run = p->runs; run > 0; run--) {
                add_run(rows, vectors, masked, mask, a, offset, p->a_step, b, p->b_step, p->k, s);
                offset += p->k * p->a_step + p->a_skip;
                b = ag_after(b, p->k * p->b_step + p->b_skip);
            }
        }
    }
    EACH (e, rows * vectors) {
        sum[e] = s[e];
    }
}

/* The rows at c[i] = alpha * sum + beta * c[i] */
ALWAYS_INLINE void put_tile(int32_t rows, int32_t vectors, bool masked, lane_mask mask, vec *sum,
                            float *const *c, float alpha, float beta) {
    if (alpha != 1.0f) {
        EACH (e, rows * vectors) {
            sum[e] *= alpha;
        }
    }
    if (beta == 1.0f) { /* an addition, which does not wait for the FMA units */
        EACH (e, rows * vectors) {
            sum[e] += get(masked && e % vectors == vectors - 1,
                          c[e / vectors] + (ptrdiff_t)(e % vectors) * LANES, mask);
        }
    } else if (beta != 0.0f) {
        EACH (e, rows * vectors) {
            sum[e] += beta * get(masked && e % vectors == vectors - 1,
                                 c[e / vectors] + (ptrdiff_t)(e % vectors) * LANES, mask);
        }
    }
    EACH (e, rows * vectors) {
        put(masked && e % vectors == vectors - 1, c[e / vectors] + (ptrdiff_t)(e % vectors) * LANES, mask,
            sum[e]);
    }
}

/* One tile, whose rows are stored at c[i]. */
ALWAYS_INLINE void broadcast_tile(int32_t rows, int32_t vectors, bool masked, int32_t last, const operands *p,
                                  float *const *c, float alpha, float beta) {
    vec sum[AG_TILE_M * VECTORS];
    broadcast_sums(rows, vectors, masked, last, p, sum);
    put_tile(rows, vectors, masked, first_lanes(last), sum, c, alpha, beta);
}

/* A function for each form of a tile: in one of all forms gcc does not keep the operands in registers. */
#define TILE_FUNCTION static __attribute__((noinline))
#define TILE(name, rows, vectors, masked)                                                                    \
    TILE_FUNCTION void name(int32_t last, const operands *p, float *const *c, float alpha, float beta) {     \
        broadcast_tile(rows, vectors, masked, last, p, c, alpha, beta);                                      \
    }
#define ROWS(name, rows)                                                                                     \
    TILE(name##_whole, rows, VECTORS, false)                                                                 \
    TILE(name##_partial, rows, VECTORS, true)                                                                \
    TILE(name##_vector, rows, 1, false)                                                                      \
    TILE(name##_part, rows, 1, true)                                                                         \
    ALWAYS_INLINE void name(int32_t columns, const operands *p, float *const *c, float alpha, float beta) {  \
        if (columns >= AG_TILE_N) {                                                                          \
            name##_whole(LANES, p, c, alpha, beta);                                                          \
        } else if (columns > LANES) {                                                                        \
            name##_partial(columns - LANES, p, c, alpha, beta);                                              \
        } else if (columns == LANES) {                                                                       \
            name##_vector(LANES, p, c, alpha, beta);                                                         \
        } else {                                                                                             \
            name##_part(columns, p, c, alpha, beta);                                                         \
        }                                                                                                    \
    }
ROWS(two_rows, 2)
ROWS(four_rows, 4)
ROWS(all_rows, AG_TILE_M)

/* The next rows of A and C: where there are fewer than AG_TILE_M, the last row of A is repeated. */
ALWAYS_INLINE void next_rows(const float *a[AG_TILE_M], float *c[AG_TILE_M], const ag_tile *t, int32_t i,
                             int32_t j, ptrdiff_t a_row, float *unused) {
    const int32_t rows = t->rows - i;
    if (!t->c_rows && rows >= AG_TILE_M) {
        const float *row = ag_after(t->a[0], i * a_row);
        float *dst = row_of(t, i) + j;
        const ptrdiff_t c_row = t->c_step / (int32_t)sizeof(float);
        for (int32_t q = 0; q < AG_TILE_M; q++) {
            a[q] = row;
            c[q] = dst;
            row = ag_after(row, a_row);
            dst += c_row;
        }
        return;
    }
    for (int32_t q = 0; q < AG_TILE_M; q++) {
        const int32_t row = q < rows ? i + q : t->rows - 1;
        a[q] = t->c_rows ? t->a[row] : ag_after(t->a[0], row * a_row);
        c[q] = q < rows ? row_of(t, row) + j : unused;
    }
}

/* All tiles of C. a_row: bytes from row to row of A. */
static void broadcast(const ag_tile *t, operands *p, ptrdiff_t a_row) {
    float unused[AG_TILE_N], *c[AG_TILE_M];
    for (int32_t j = 0; j < t->columns; j += AG_TILE_N, p->b += AG_TILE_N) {
        const int32_t columns = t->columns - j;
        for (int32_t i = 0, rows; i < t->rows; i += rows) {
            const int32_t rest = t->rows - i;
            rows = AG_TILE_M;
            if (AG_TILE_M > 4 && rest > AG_TILE_M &&
                rest <= 8) { /* as tiles of two rows do not fill the FMA units */
                rows = 4;
            }
            next_rows(p->a, c, t, i, j, a_row, unused);
            if (AG_TILE_M > 4 && rows == AG_TILE_M && rest > 4) {
                all_rows(columns, p, c, t->alpha, t->beta);
                continue;
            }
            if (rest > 2) {
                four_rows(columns, p, c, t->alpha, t->beta);
            } else {
                two_rows(columns, p, c, t->alpha, t->beta);
            }
        }
    }
}

static operands operands_of(const ag_tile *t) {
    return (operands){{NULL},     t->b[0],    t->a_step,   t->b_step, t->a_skip, t->b_skip,
                      t->a_block, t->b_block, t->k_blocks, t->k_runs, t->k};
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    operands p = operands_of(t);
    broadcast(t, &p, t->a_row);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    operands p = operands_of(t);
    broadcast(t, &p, sizeof(float));
}

/* Columns j and up, at most AG_TILE_M, as rows of the transposed tile; `vectors` of rows i and up as its
 * columns; the last vector has `last` elements. */
ALWAYS_INLINE void gathered_tile(int32_t vectors, bool masked, int32_t last, const ag_tile *t, int32_t i,
                                 int32_t j, const operands *p) {
    const int32_t columns = t->columns - j < AG_TILE_M ? t->columns - j : AG_TILE_M;
    vec sum[AG_TILE_M * VECTORS];
    float sums[AG_TILE_M][AG_TILE_N];
    broadcast_sums(AG_TILE_M, vectors, masked, last, p, sum);
    for (int32_t e = 0; e < AG_TILE_M * vectors; e++) {
        store(sums[e / vectors] + (ptrdiff_t)(e % vectors) * LANES, sum[e]);
    }
    for (int32_t r = 0; r < (vectors - 1) * LANES + last; r++) {
        float *c = row_of(t, i + r) + j;
        for (int32_t q = 0; q < columns; q++) {
            c[q] = t->beta == 0.0f ? t->alpha * sums[q][r] : t->alpha * sums[q][r] + t->beta * c[q];
        }
    }
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    operands p = {{NULL},     t->a[0],    t->b_step,   t->a_step, t->b_skip, t->a_skip,
                  t->b_block, t->a_block, t->k_blocks, t->k_runs, t->k};
    for (int32_t i = 0; i < t->rows; i += AG_TILE_N, p.b += AG_TILE_N) {
        const int32_t rows = t->rows - i;
        for (int32_t j = 0; j < t->columns; j += AG_TILE_M) {
            for (int32_t q = 0; q < AG_TILE_M; q++) {
                p.a[q] = t->b[j + q < t->columns ? j + q : t->columns - 1];
            }
            if (rows >= AG_TILE_N) {
                gathered_tile(VECTORS, false, LANES, t, i, j, &p);
            } else if (rows > LANES) {
                gathered_tile(VECTORS, true, rows - LANES, t, i, j, &p);
            } else if (rows == LANES) {
                gathered_tile(1, false, LANES, t, i, j, &p);
            } else {
                gathered_tile(1, true, rows, t, i, j, &p);
            }
        }
    }
}

/* sum[r * DOT_COLUMNS + q] += row a[r] * column b[q], of one vector, or of the selected part of it, for
 * `height` rows. */
ALWAYS_INLINE void add_products(int32_t height, bool part, lane_mask mask, const float *const *a,
                                const float *const *b, ptrdiff_t p, vec *sum) {
    vec right[DOT_COLUMNS];
    EACH (q, DOT_COLUMNS) {
        right[q] = get(part, b[q] + p, mask);
    }
    EACH (e, height * DOT_COLUMNS) {
        sum[e] += get(part, a[e / DOT_COLUMNS] + p, mask) * right[e % DOT_COLUMNS];
    }
}

/* `height` rows from i on, a constant, and DOT_COLUMNS columns from j on. `whole`, a constant: C has all of
 * them, and sums have one run. */
ALWAYS_INLINE void dot_tile(int32_t height, bool whole, const ag_tile *t, int32_t i, int32_t j) {
    const int32_t rows = whole || t->rows - i >= height ? height : t->rows - i;
    const int32_t columns = whole || t->columns - j >= DOT_COLUMNS ? DOT_COLUMNS : t->columns - j;
    const float *a[DOT_ROWS], *b[DOT_COLUMNS];
    vec sum[DOT_ROWS * DOT_COLUMNS];
    EACH (e, height * DOT_COLUMNS) {
        sum[e] = zero();
    }
    EACH (q, height) {
        const int32_t row = i + (q < rows ? q : rows - 1);
        a[q] = !whole && t->c_rows ? t->a[row] : ag_after(t->a[0], (ptrdiff_t)row * t->a_row);
    }
    EACH (q, DOT_COLUMNS) {
        b[q] = t->b[j + (q < columns ? q : columns - 1)];
    }
    for (int32_t run = whole ? 1 : t->k_runs; run > 0; run--) {
        ptrdiff_t p = 0;
        for (; p + LANES <= t->k; p += LANES) {
            add_products(height, false, first_lanes(0), a, b, p, sum);
        }
        if (p < t->k) {
            add_products(height, true, first_lanes(t->k - (int32_t)p), a, b, p, sum);
        }
        EACH (r, height) {
            a[r] = ag_after(a[r] + t->k, t->a_skip);
        }
        EACH (q, DOT_COLUMNS) {
            b[q] = ag_after(b[q] + t->k, t->b_skip);
        }
    }
    quad totals[DOT_ROWS];
    sums_of_rows(height, sum, totals);
    EACH (r, height) {
        const quad total = totals[r];
        if (r < rows) {
            float *c = row_of(t, i + r) + j;
            if (columns == DOT_COLUMNS) {
                unaligned_quad *dst = (unaligned_quad *)c;
                *dst = t->beta == 0.0f ? t->alpha * total : t->alpha * total + t->beta * *dst;
                continue;
            }
            for (int32_t q = 0; q < columns; q++) {
                c[q] = t->beta == 0.0f ? t->alpha * total[q] : t->alpha * total[q] + t->beta * c[q];
            }
        }
    }
}

/* A separate function: inlined, the code before a tile takes a tenth of the tile's time. */
TILE_FUNCTION void whole_dots(const ag_tile *t, int32_t i, int32_t j) {
    dot_tile(DOT_ROWS, true, t, i, j);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    const int32_t whole_rows = t->c_rows || t->k_runs > 1 ? 0 : t->rows / DOT_ROWS * DOT_ROWS;
    for (int32_t j = 0; j < t->columns; j += DOT_COLUMNS) {
        int32_t i = 0;
        if (t->columns - j >= DOT_COLUMNS) {
            for (; i < whole_rows; i += DOT_ROWS) {
                whole_dots(t, i, j);
            }
        }
        for (; i < t->rows; i += DOT_ROWS) {
            if (DOT_ROWS == 3 && t->rows - i == 2) {
                dot_tile(2, false, t, i, j);
            } else {
                dot_tile(DOT_ROWS, false, t, i, j);
            }
        }
    }
}
