/* Factors (vectors.h) as multipliers, for backends without instructions that multiply by a lane of a vector.
 */
#ifndef AG_TILES_FACTORS_H
#define AG_TILES_FACTORS_H

typedef struct {
    multiplier val[4];
} factors;

ALWAYS_INLINE factors four_factors(const float *p) {
    return (factors){{multiplier_of(p[0]), multiplier_of(p[1]), multiplier_of(p[2]), multiplier_of(p[3])}};
}

ALWAYS_INLINE factors one_factor(float f) {
    return (factors){{multiplier_of(f)}};
}

ALWAYS_INLINE factors scaled(factors f, float alpha) {
    EACH (i, 4) {
        f.val[i] = alpha * f.val[i];
    }
    return f;
}

ALWAYS_INLINE vec times(vec v, factors f, int32_t i) {
    return times_factor(v, f.val[i]);
}

ALWAYS_INLINE vec plus(vec sum, vec v, factors f, int32_t i) {
    return plus_scaled(sum, v, f.val[i]);
}

#endif
