/* Results of 8-bit integers from vectors of eight sums, with AVX2. */
#ifndef AG_HOST_REQUANTIZED_H
#define AG_HOST_REQUANTIZED_H

#include "tiles/symbols.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef int32_t eight __attribute__((vector_size(32), may_alias));

/* How results are stored. */
typedef struct ag_output_s8 {
    int32_t zero, low, high;
} ag_output_s8;

ALWAYS_INLINE ag_output_s8 ag_output_of(int32_t zero, int32_t low, int32_t high) {
    const ag_output_s8 o = {zero, low, high};
    return o;
}

/* The first `count` of eight elements, 4 or 8; others are 0. */
ALWAYS_INLINE eight elements(const int32_t *p, int32_t count) {
    return (eight)(count < 8 ? _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p))
                             : _mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* The same of bytes. */
ALWAYS_INLINE eight bytes_as_words(const int8_t *p, int32_t count) {
    int64_t bytes = 0;
    memcpy(&bytes, p, count < 8 ? 4 : 8);
    return (eight)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes));
}

/* ag_requantized of ag_quantization.h. Bits 31 to 62 of the products of even and of odd elements are used. */
ALWAYS_INLINE eight requantized(eight v, eight multiplier, eight shift) {
    const __m256i m = (__m256i)multiplier, half = _mm256_set1_epi64x(1 << 30);
    const __m256i w = (__m256i)(v << (shift & (shift > 0)));
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(w, m), half);
    const __m256i odd =
        _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(w, 32), _mm256_srli_epi64(m, 32)), half);
    const eight high =
        (eight)_mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
    const eight right = -(shift & (shift < 0)), mask = ~((eight)_mm256_set1_epi32(-1) << right);
    return (high >> right) - ((high & mask) > (mask >> 1) - (high < 0));
}

/* Stores the results of four or eight sums: `requantized` of them, plus the zero, between the limits. */
ALWAYS_INLINE void put_elements(int8_t *y, eight sums, const int32_t *multiplier, const int8_t *shift,
                                int32_t count, const ag_output_s8 *o) {
    const eight v = requantized(sums, elements(multiplier, count), bytes_as_words(shift, count)) + o->zero;
    const __m256i limited =
        _mm256_min_epi32(_mm256_max_epi32((__m256i)v, _mm256_set1_epi32(o->low)), _mm256_set1_epi32(o->high));
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128(limited), _mm256_extracti128_si256(limited, 1));
    const int64_t bytes = _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
    memcpy(y, &bytes, count < 8 ? 4 : 8);
}

#endif
