/* The micro-kernels of microkernel.h over vectors, which hold the sums of a tile:
 *
 *     nn, tn: rows of C                              nt, tg: columns of C
 *
 *              a row of B                                     a column of A
 *       a[0]   +--------+--------+                    b[0]    +--------+
 *        ..    | vector | vector |  times a factor     ..     | vector |  times a factor, an element of B
 *       a[3]   +--------+--------+                    b[N-1]  +--------+
 *
 * LANES products of a run are added at a time; rows of A that are read as columns are transposed. A tile has
 * four rows, and LANES is 1 or 4. */
#include "tiles/microkernel.h"
#include "tiles/vectors.h"

enum { ROW = AG_TILE_N / LANES, COLUMN = AG_TILE_M / LANES }; /* vectors */

static inline void skip(const float **p, int32_t count, int32_t bytes) {
    EACH (i, count) {
        p[i] = ag_after(p[i], bytes);
    }
}

typedef char ag_vectors_have_one_or_four_lanes[LANES == 1 || LANES == 4 ? 1 : -1];

/* C = sums, C + factor * sums or sums + factor * C, by `mode`, a constant; sum[i * ROW + j] is vector j of
 * row i of C. */
ALWAYS_INLINE void put_rows(beta_mode mode, const vec *sum, float factor, const ag_tile *t) {
    const factors f = one_factor(factor);
    const ptrdiff_t step = t->c_step;
    float *c = t->c;
    EACH (i, AG_TILE_M) {
        EACH (j, ROW) {
            const vec s = *sum++;
            float *p = c + (ptrdiff_t)j * LANES;
            store(p, mode == BETA_ZERO  ? s
                     : mode == BETA_ONE ? plus(load(p), s, f, 0)
                                        : plus(s, load(p), f, 0));
        }
        c = ag_element_after(c, step);
    }
}

/* C = alpha * sums + beta * C */
ALWAYS_INLINE void put_tile(vec *sum, const ag_tile *t) {
    if (t->beta == 1.0f) {
        put_rows(BETA_ONE, sum, t->alpha, t);
        return;
    }
    if (t->alpha != 1.0f) {
        EACH (s, AG_TILE_M * ROW) {
            sum[s] = times(sum[s], one_factor(t->alpha), 0);
        }
    }
    if (t->beta == 0.0f) {
        put_rows(BETA_ZERO, sum, 0.0f, t);
    } else {
        put_rows(BETA_ANY, sum, t->beta, t);
    }
}

/* One k: the sums of row i += factor p of f[i], or where A is not stored by rows, factor i of f[0], times a
 * row of B. */
ALWAYS_INLINE void add_row(bool a_rows, vec *sum, const factors *f, int32_t p, const tile_row *b) {
    EACH (i, AG_TILE_M) {
        EACH (j, ROW) {
            vec *s = sum + (ptrdiff_t)i * ROW + j;
            *s = a_rows ? plus(*s, b->val[j], f[i], p) : plus(*s, b->val[j], f[0], i);
        }
    }
}

/* C by rows; `a_rows`: A is stored as rows. */
ALWAYS_INLINE void by_rows(bool a_rows, const ag_tile *t) {
    const float *a[AG_TILE_M], *b = t->b[0];
    const ptrdiff_t a_step = t->a_step, b_step = t->b_step;
    vec sum[AG_TILE_M * ROW];
    factors f[AG_TILE_M];
    EACH (s, AG_TILE_M * ROW) {
        sum[s] = zero();
    }
    EACH (i, AG_TILE_M) {
        a[i] = t->a[a_rows ? i : 0];
    }
    for (int32_t run = t->k_runs;;) {
        for (uint32_t k = (uint32_t)t->k / LANES; k > 0; k--) {
            if (a_rows) {
                EACH (i, AG_TILE_M) {
                    f[i] = next_factors(&a[i]);
                }
            }
            EACH (p, LANES) {
                if (!a_rows) {
                    f[0] = four_factors_by(&a[0], a_step);
                }
                const tile_row row = next_row(&b, b_step);
                add_row(a_rows, sum, f, p, &row);
            }
        }
        for (uint32_t k = (uint32_t)t->k % LANES; k > 0; k--) {
            if (a_rows) {
                EACH (i, AG_TILE_M) {
                    f[i] = next_factor(&a[i]);
                }
            } else {
                f[0] = four_factors_by(&a[0], a_step);
            }
            const tile_row row = next_row(&b, b_step);
            add_row(a_rows, sum, f, 0, &row);
        }
        if (--run == 0) {
            break;
        }
        skip(a, AG_TILE_M, t->a_skip);
        b = ag_after(b, t->b_skip);
    }
    put_tile(sum, t);
}

/* One k: the sums += a column of A, `step` vectors apart, times factor p of each column of B. */
ALWAYS_INLINE void add_column(vec *sum, const vec *column, int32_t step, factors f, int32_t p) {
    EACH (i, COLUMN) {
        sum[i] = plus(sum[i], column[(ptrdiff_t)i * step], f, p);
    }
}

/* C by columns; `rows`: A and B are stored as rows, otherwise columns of B are at arbitrary addresses. */
ALWAYS_INLINE void by_columns(bool rows, const ag_tile *t) {
    const float *a[AG_TILE_M], *b[AG_TILE_N];
    const ptrdiff_t a_step = t->a_step, b_step = t->b_step;
    vec sum[AG_TILE_N * COLUMN], column[AG_TILE_M], row[AG_TILE_M * ROW];
    EACH (s, AG_TILE_N * COLUMN) {
        sum[s] = zero();
    }
    EACH (i, AG_TILE_M) {
        a[i] = t->a[rows ? i : 0];
    }
    EACH (j, AG_TILE_N) {
        b[j] = t->b[j];
    }
    for (int32_t run = t->k_runs;;) {
        uint32_t k = (uint32_t)t->k;
        for (uint32_t left = rows ? k / LANES : 0; left > 0; left--) {
            EACH (i, AG_TILE_M) {
                column[i] = next_vec(&a[i]);
            }
            EACH (i, COLUMN) {
                transpose(column + (ptrdiff_t)i * LANES);
            }
            EACH (j, AG_TILE_N) {
                const factors f = next_factors(&b[j]);
                EACH (p, LANES) {
                    add_column(sum + (ptrdiff_t)j * COLUMN, column + p, LANES, f, p);
                }
            }
        }
        for (k = rows ? k % LANES : k; k > 0; k--) {
            EACH (i, COLUMN) {
                const ptrdiff_t first = (ptrdiff_t)i * LANES;
                column[i] = rows ? next_gathered(a + first) : load(a[0] + first);
            }
            a[0] = rows ? a[0] : ag_after(a[0], a_step);
            EACH (j, AG_TILE_N) {
                const factors f = rows ? next_factor(&b[j]) : one_factor_by(&b[j], b_step);
                add_column(sum + (ptrdiff_t)j * COLUMN, column, 1, f, 0);
            }
        }
        if (--run == 0) {
            break;
        }
        skip(a, AG_TILE_M, t->a_skip);
        skip(b, AG_TILE_N, t->b_skip);
    }
    EACH (j, ROW) {
        EACH (i, COLUMN) {
            vec block[LANES];
            EACH (p, LANES) {
                block[p] = sum[(j * LANES + p) * COLUMN + i];
            }
            transpose(block);
            EACH (p, LANES) {
                row[(i * LANES + p) * ROW + j] = block[p];
            }
        }
    }
    put_tile(row, t);
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    by_rows(true, t);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    by_rows(false, t);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    by_columns(true, t);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    by_columns(false, t);
}
