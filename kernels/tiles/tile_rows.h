/* What microkernel.c reads (vectors.h), where no instruction moves a row of a tile. */
#ifndef AG_TILES_TILE_ROWS_H
#define AG_TILES_TILE_ROWS_H

typedef struct {
    vec val[AG_TILE_N / LANES];
} tile_row;

ALWAYS_INLINE tile_row next_row(const float **p, ptrdiff_t step) {
    tile_row row;
    EACH (j, AG_TILE_N / LANES) {
        row.val[j] = load(*p + (ptrdiff_t)j * LANES);
    }
    *p = ag_after(*p, step);
    return row;
}

ALWAYS_INLINE factors four_factors_by(const float **p, ptrdiff_t step) {
    const factors f = four_factors(*p);
    *p = ag_after(*p, step);
    return f;
}

ALWAYS_INLINE factors one_factor_by(const float **p, ptrdiff_t step) {
    const factors f = one_factor(**p);
    *p = ag_after(*p, step);
    return f;
}

ALWAYS_INLINE factors next_factor(const float **p) {
    return one_factor(*(*p)++);
}

ALWAYS_INLINE factors next_factors(const float **p) {
    return LANES == 1 ? next_factor(p) : four_factors_by(p, LANES * sizeof(float));
}

ALWAYS_INLINE vec next_gathered(const float **p) {
    float lanes[LANES];
    if (LANES == 1) {
        return next_vec(p);
    }
    EACH (i, LANES) {
        lanes[i] = *p[i]++;
    }
    return load(lanes);
}

ALWAYS_INLINE void transpose(vec *v) {
    float rows[LANES][LANES], columns[LANES][LANES];
    if (LANES == 1) {
        return;
    }
    EACH (i, LANES) {
        store(rows[i], v[i]);
    }
    EACH (e, LANES * LANES) {
        columns[e % LANES][e / LANES] = rows[e / LANES][e % LANES];
    }
    EACH (i, LANES) {
        v[i] = load(columns[i]);
    }
}

#endif
