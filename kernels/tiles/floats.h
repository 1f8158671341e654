/* Vectors of one float (vectors.h), for the vec.h of cores without instructions for vectors. */
#ifndef AG_TILES_FLOATS_H
#define AG_TILES_FLOATS_H

#include "tiles/symbols.h"

#include <stdbool.h>
#include <stdint.h>

typedef float vec;

#include "tiles/operators.h"

typedef int32_t lane_mask;

ALWAYS_INLINE vec load(const float *p) {
    return *p;
}

ALWAYS_INLINE void store(float *p, vec v) {
    *p = v;
}

ALWAYS_INLINE lane_mask first_lanes(int32_t count) {
    return count;
}

ALWAYS_INLINE vec load_masked(const float *p, lane_mask mask) {
    (void)mask;
    return *p;
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
    (void)mask;
    *p = v;
}

ALWAYS_INLINE vec between(vec v, float low, float high) {
    return v < low ? low : v > high ? high : v;
}

/* For maxima.h. The first comparison is false for most values. */
typedef bool vec_mask;

ALWAYS_INLINE vec_mask larger(vec v, vec best) {
    return !(v <= best) && (best == best || v != v);
}

ALWAYS_INLINE vec pick(vec_mask mask, vec v, vec w) {
    return mask ? v : w;
}

typedef int32_t vec_number;

ALWAYS_INLINE vec_number same_number(int32_t number) {
    return number;
}

ALWAYS_INLINE vec_number pick_number(vec_mask mask, int32_t number, vec_number which) {
    return mask ? number : which;
}

ALWAYS_INLINE vec_number load_numbers(const uint8_t *p, int32_t count) {
    (void)count;
    return *p;
}

ALWAYS_INLINE void put_numbers(uint8_t *p, vec_number which, int32_t count) {
    (void)count;
    *p = (uint8_t)which;
}

ALWAYS_INLINE float total(vec v) {
    return v;
}

/* y[4] = alpha * the totals of four vectors + beta * old[4] */
ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    EACH (i, 4) {
        y[i] = beta == 0.0f ? alpha * v[i] : alpha * v[i] + beta * old[i];
    }
}

#endif
