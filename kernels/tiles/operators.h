/* Vectors (vectors.h) of a type that has the operators of C: `vec` is defined before. */
#ifndef AG_TILES_OPERATORS_H
#define AG_TILES_OPERATORS_H

#include "tiles/symbols.h"

ALWAYS_INLINE vec zero(void) {
    return (vec){0};
}

ALWAYS_INLINE vec splat(float x) {
    return x - (vec){0};
}

ALWAYS_INLINE vec add(vec v, vec w) {
    return v + w;
}

typedef vec multiplier;

ALWAYS_INLINE multiplier multiplier_of(float f) {
    return splat(f);
}

ALWAYS_INLINE vec times_factor(vec v, multiplier f) {
    return v * f;
}

ALWAYS_INLINE vec plus_scaled(vec sum, vec v, multiplier f) {
    return sum + v * f;
}

ALWAYS_INLINE vec plus_product(vec sum, vec v, vec w) {
    return sum + v * w;
}

#endif
