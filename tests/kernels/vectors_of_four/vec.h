/* Vectors of four floats by the extensions of GCC and Clang, with what every vec.h needs and nothing else. */
#ifndef VECTORS_OF_FOUR_VEC_H
#define VECTORS_OF_FOUR_VEC_H

#include <stdint.h>
#include <string.h>

#define AG_TILE_M 4
#define AG_TILE_N 4
#define AG_CHANNEL_TILE 8

enum {
    LANES = 4,
    RUN = 2,
    PART = 1,
    SUMS = 8,
    COLUMN_VECTORS = 4,
    GEMV_ROWS = 4,
    DEPTHWISE_RESULTS = 4,
    FINISH_VECTORS = 4
};
#define SUM_ROWS(vectors) 4

typedef float vec __attribute__((vector_size(16)));

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
    (void)mask;
    return (vec){*p};
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
    (void)mask;
    *p = v[0];
}

typedef int32_t vec_mask __attribute__((vector_size(16)));

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

typedef int32_t vec_number __attribute__((vector_size(16)));

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
    return (v[0] + v[1]) + (v[2] + v[3]);
}

ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    for (int32_t i = 0; i < 4; i++) {
        y[i] = beta == 0.0f ? alpha * total(v[i]) : alpha * total(v[i]) + beta * old[i];
    }
}

#endif
