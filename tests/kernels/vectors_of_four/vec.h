/* Vectors of any number of floats, four in this folder's schedule, by the extensions of GCC and Clang, with
 * what every vec.h needs and nothing else. */
#ifndef VECTORS_OF_FOUR_VEC_H
#define VECTORS_OF_FOUR_VEC_H

#include "tiles/helpers.h"

#include <string.h>

#define AG_MOVING_POINTERS 0

typedef float vec __attribute__((vector_size(4 * LANES)));

#include "tiles/operators.h"

typedef int32_t lane_mask;

ALWAYS_INLINE vec load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

ALWAYS_INLINE void store(float *p, vec v) {
    memcpy(p, &v, sizeof v);
}

ALWAYS_INLINE lane_mask first_lanes(int32_t count) {
    return count;
}

ALWAYS_INLINE vec load_masked(const float *p, lane_mask mask) {
    vec v = {0.0f};
    memcpy(&v, p, (size_t)(PART == 1 ? 1 : mask) * sizeof *p);
    return v;
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
    memcpy(p, &v, (size_t)(PART == 1 ? 1 : mask) * sizeof *p);
}

typedef int32_t vec_mask __attribute__((vector_size(4 * LANES)));

ALWAYS_INLINE vec pick(vec_mask mask, vec v, vec w) {
    return (vec)((mask & (vec_mask)v) | (~mask & (vec_mask)w));
}

ALWAYS_INLINE vec_mask larger(vec v, vec best) {
    return (v > best) | (v != v);
}

ALWAYS_INLINE vec between(vec v, float low, float high) {
    v = pick(v < splat(low), splat(low), v);
    return pick(v > splat(high), splat(high), v);
}

typedef int32_t vec_number __attribute__((vector_size(4 * LANES)));

ALWAYS_INLINE vec_number same_number(int32_t number) {
    return number - (vec_number){0};
}

ALWAYS_INLINE vec_number pick_number(vec_mask mask, int32_t number, vec_number which) {
    return (mask & same_number(number)) | (~mask & which);
}

ALWAYS_INLINE vec_number load_numbers(const uint8_t *p, int32_t count) {
    vec_number n = {0};
    for (int32_t i = 0; i < count; i++) {
        n[i] = p[i];
    }
    return n;
}

ALWAYS_INLINE void put_numbers(uint8_t *p, vec_number which, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        p[i] = (uint8_t)which[i];
    }
}

ALWAYS_INLINE float total(vec v) {
    float sum = v[0];
    for (int32_t i = 1; i < LANES; i++) {
        sum += v[i];
    }
    return sum;
}

ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    for (int32_t i = 0; i < 4; i++) {
        y[i] = beta == 0.0f ? alpha * total(v[i]) : alpha * total(v[i]) + beta * old[i];
    }
}

#include "tiles/moves.h"
#include "tiles/runs.h"
#include "tiles/factors.h"
#include "tiles/tile_rows.h"
#include "tiles/packing.h"
#include "tiles/to_floats.h"

#endif
