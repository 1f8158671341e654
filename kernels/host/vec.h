/* Vectors as wide as the instructions that the compiler may use (-march): 16 floats with AVX-512, 8 with AVX,
 * otherwise 4. The host's kernels are written once on top of it; partial vectors are loaded and stored with
 * masks where the machine has them. */
#ifndef AG_HOST_VEC_H
#define AG_HOST_VEC_H

#include "tiles/helpers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __AVX__
#include <immintrin.h>
#endif

#define AG_MOVING_POINTERS 0

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float unaligned_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t vec_s32 __attribute__((vector_size(4 * LANES)));
typedef float quad __attribute__((vector_size(16)));
typedef float unaligned_quad __attribute__((vector_size(16), aligned(4), may_alias));

#include "tiles/operators.h"

ALWAYS_INLINE vec load(const float *p) {
    return *(const unaligned_vec *)p;
}

ALWAYS_INLINE void store(float *p, vec v) {
    *(unaligned_vec *)p = v;
}

/* Selects the first `count` lanes, 0 <= count <= LANES. */
#if defined __AVX512F__
typedef __mmask16 lane_mask;
#elif defined __AVX__
typedef struct {
    __m256i lanes;
    int32_t count;
} lane_mask;
#else
typedef int32_t lane_mask;
#endif

ALWAYS_INLINE lane_mask first_lanes(int32_t count) {
#if defined __AVX512F__
    return (lane_mask)((1u << count) - 1u);
#elif defined __AVX__
    static const int32_t ones[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return (lane_mask){_mm256_loadu_si256((const __m256i *)(const void *)(ones + LANES - count)), count};
#else
    return count;
#endif
}

/* The selected lanes, the others are 0. Memory past them is not accessed. */
ALWAYS_INLINE vec load_masked(const float *p, lane_mask mask) {
#if defined __AVX512F__
    return (vec)_mm512_maskz_loadu_ps(mask, p);
#elif defined __AVX__
    return (vec)_mm256_maskload_ps(p, mask.lanes);
#else
    if (mask >= LANES) {
        return load(p);
    }
    vec v = {0};
    for (int32_t i = 0; i < mask; i++) {
        v[i] = p[i];
    }
    return v;
#endif
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
#if defined __AVX512F__
    _mm512_mask_storeu_ps(p, mask, (__m512)v);
#elif defined __AVX__
    if (mask.count == LANES) {
        store(p, v);
        return;
    }
    __m128 rest = _mm256_castps256_ps128((__m256)v); /* a masked store takes AMD's cores 20 cycles */
    if (mask.count & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if (mask.count & 2) {
        _mm_storel_pi((__m64 *)(void *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
    }
    if (mask.count & 1) {
        _mm_store_ss(p, rest);
    }
#else
    for (int32_t i = 0; i < mask; i++) {
        p[i] = v[i];
    }
#endif
}

/* The sum of a vector's four quarters (two halves, itself), lane by lane. */
ALWAYS_INLINE quad quarters(vec v) {
#if defined __AVX512F__
    return (__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7)) +
           (__builtin_shufflevector(v, v, 8, 9, 10, 11) + __builtin_shufflevector(v, v, 12, 13, 14, 15));
#elif defined __AVX__
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
    return v;
#endif
}

/* The horizontal sums of four vectors. */
ALWAYS_INLINE quad four_sums(vec v0, vec v1, vec v2, vec v3) {
    const quad a = quarters(v0), b = quarters(v1), c = quarters(v2), d = quarters(v3);
    const quad ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    const quad cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) + __builtin_shufflevector(c, d, 2, 3, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

/* The horizontal sums of `rows` x 4 vectors; with AVX-512, of 4 x 4. */
ALWAYS_INLINE void sums_of_rows(int32_t rows, const vec *v, quad *sums) {
#if defined __AVX512F__
    (void)rows;
    vec row[4];
    EACH (i, 4) { /* within each quarter, as four_sums does */
        const vec *r = v + (ptrdiff_t)4 * i;
        const vec ab =
            __builtin_shufflevector(r[0], r[1], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
            __builtin_shufflevector(r[0], r[1], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        const vec cd =
            __builtin_shufflevector(r[2], r[3], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
            __builtin_shufflevector(r[2], r[3], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        row[i] = __builtin_shufflevector(ab, cd, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
                 __builtin_shufflevector(ab, cd, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
    }
    vec half[2];
    EACH (i, 2) {
        half[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19,
                                          20, 21, 22, 23) +
                  __builtin_shufflevector(row[2 * i], row[2 * i + 1], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25,
                                          26, 27, 28, 29, 30, 31);
    }
    const vec all =
        __builtin_shufflevector(half[0], half[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
        __builtin_shufflevector(half[0], half[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    sums[0] = __builtin_shufflevector(all, all, 0, 1, 2, 3);
    sums[1] = __builtin_shufflevector(all, all, 4, 5, 6, 7);
    sums[2] = __builtin_shufflevector(all, all, 8, 9, 10, 11);
    sums[3] = __builtin_shufflevector(all, all, 12, 13, 14, 15);
#else
    EACH (i, rows) {
        const vec *r = v + (ptrdiff_t)4 * i;
        sums[i] = four_sums(r[0], r[1], r[2], r[3]);
    }
#endif
}

/* Where one of two operands is NaN, x86 takes the second one. */
ALWAYS_INLINE vec between(vec v, float low, float high) {
#if defined __AVX512F__
    return (vec)_mm512_min_ps((__m512)splat(high), _mm512_max_ps((__m512)splat(low), (__m512)v));
#elif defined __AVX__
    return (vec)_mm256_min_ps((__m256)splat(high), _mm256_max_ps((__m256)splat(low), (__m256)v));
#else
    for (int32_t i = 0; i < LANES; i++) {
        v[i] = v[i] < low ? low : v[i] > high ? high : v[i];
    }
    return v;
#endif
}

ALWAYS_INLINE float total(vec v) {
    const quad q = quarters(v);
    return (q[0] + q[2]) + (q[1] + q[3]);
}

/* For maxima.h. */
typedef vec_s32 vec_mask;

ALWAYS_INLINE vec_mask larger(vec v, vec best) {
    return (v > best) | (v != v);
}

ALWAYS_INLINE vec pick(vec_mask mask, vec v, vec w) {
    return (vec)((mask & (vec_s32)v) | (~mask & (vec_s32)w));
}

typedef vec_s32 vec_number;

ALWAYS_INLINE vec_number same_number(int32_t number) {
    return number - (vec_s32){0};
}

ALWAYS_INLINE vec_number pick_number(vec_mask mask, int32_t number, vec_number which) {
    return (mask & number) | (~mask & which);
}

ALWAYS_INLINE vec_number load_numbers(const uint8_t *p, int32_t count) {
    vec_number which = {0};
    for (int32_t i = 0; i < count; i++) {
        which[i] = p[i];
    }
    return which;
}

ALWAYS_INLINE void put_numbers(uint8_t *p, vec_number which, int32_t count) {
#if defined __AVX512F__
    _mm512_mask_cvtepi32_storeu_epi8(p, (__mmask16)((1u << count) - 1u), (__m512i)which);
#else
    for (int32_t i = 0; i < count; i++) {
        p[i] = (uint8_t)which[i];
    }
#endif
}

/* y[4] = alpha * the totals of four vectors + beta * old[4] */
ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    const quad q = alpha * four_sums(v[0], v[1], v[2], v[3]);
    *(unaligned_quad *)y = beta == 0.0f ? q : q + beta * *(const unaligned_quad *)old;
}

#include "tiles/moves.h"
#include "tiles/runs.h"
#include "tiles/factors.h"
#include "tiles/to_floats.h"
#include "pack_b.h"

#endif
