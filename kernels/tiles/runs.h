/* Runs (vectors.h) as vectors, where no instruction moves several. */
#ifndef AG_TILES_RUNS_H
#define AG_TILES_RUNS_H

typedef struct {
    vec val[RUN];
} vecs;

ALWAYS_INLINE vecs load_run(int32_t vectors, const float *p) {
    vecs r;
    EACH (q, vectors) {
        r.val[q] = load(p + (ptrdiff_t)q * LANES);
    }
    return r;
}

ALWAYS_INLINE vecs next_run(int32_t vectors, const float **p) {
    vecs r;
    EACH (q, vectors) {
        r.val[q] = next_vec(p);
    }
    return r;
}

ALWAYS_INLINE void put_run(int32_t vectors, float **p, vecs r) {
    EACH (q, vectors) {
        put_vec(p, r.val[q]);
    }
}

#define held_run next_run
#define second_run next_run
#define load_first load_run
#define put_first put_run

#endif
