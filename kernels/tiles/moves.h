/* Vectors that move their pointer on (vectors.h), where no instruction does. */
#ifndef AG_TILES_MOVES_H
#define AG_TILES_MOVES_H

ALWAYS_INLINE vec next_vec(const float **p) {
    const vec v = load(*p);
    *p += LANES;
    return v;
}

ALWAYS_INLINE void put_vec(float **p, vec v) {
    store(*p, v);
    *p += LANES;
}

#endif
