/* Arithmetic of quantised tensors, with the bits of CMSIS-NN's default rounding on every core. A tensor q of
 * 8-bit integers represents scale * (q - zero). */
#ifndef AG_QUANTIZATION_H
#define AG_QUANTIZATION_H

#include <stddef.h>
#include <stdint.h>

#include "ag_math.h"

/* v between low and high. */
static inline int32_t ag_limited(int32_t v, int32_t low, int32_t high) {
    return v < low ? low : v > high ? high : v;
}

/* Whether v is between low and high, neither of them. */
static inline int32_t ag_is_inside(int32_t v, int32_t low, int32_t high) {
    return v > low && v < high;
}

/* Whether v is between low and high, or one of them. */
static inline int32_t ag_is_within(int32_t v, int32_t low, int32_t high) {
    return v >= low && v <= high;
}

/* Bit `at` of a mask: whether v is between low and high, or one of them. The first bit of a byte sets the
 * others to 0. */
static inline void ag_mark_within(uint8_t *mask, ptrdiff_t at, int32_t v, int32_t low, int32_t high) {
    const uint32_t others = at % 8 > 0 ? mask[at / 8] : 0u;
    mask[at / 8] = (uint8_t)(others | (uint32_t)ag_is_within(v, low, high) << at % 8);
}

/* v / 2^31, rounded to an integer, halves up, where that fits 32 bits. */
static inline int32_t ag_high_word(int64_t v) {
    return (int32_t)((v + (1 << 30)) >> 31);
}

/* v / 2^right, rounded to an integer, halves away from 0; 0 <= right <= 31. */
static inline int32_t ag_divided(int32_t v, int32_t right) {
    const int32_t mask = (int32_t)((1u << right) - 1u), remainder = v & mask;
    return (v >> right) + (remainder > (mask >> 1) + (v < 0));
}

/* v * multiplier / 2^31 * 2^shift, where multiplier is 0 or has a magnitude of at least 2^30 and v * 2^shift
 * fits 32 bits: the product is rounded to an integer, halves up, and divided by 2^-shift if shift is
 * negative, at least -31, rounded again, halves away from 0. */
static inline int32_t ag_requantized(int32_t v, int32_t multiplier, int32_t shift) {
    const int64_t wide = (int64_t)v * (1 << (shift > 0 ? shift : 0)) * multiplier;
    return ag_divided(ag_high_word(wide), shift < 0 ? -shift : 0);
}

/* The 8-bit integer that represents x: x / scale + zero, rounded to the nearest, halves to even, between -128
 * and 127; -128 for NaN. */
static inline int8_t ag_quantized(float x, float inverse_scale, int32_t zero) {
    const float q = ag_rintf(x * inverse_scale) + (float)zero;
    return (int8_t)(!(q > -128.0f) ? -128.0f : q > 127.0f ? 127.0f : q);
}

/* x / scale, rounded to the nearest integer, halves to even, between low and high; low for NaN. */
static inline int32_t ag_quantized_s32(float x, float inverse_scale, float low, float high) {
    const float q = ag_rintf(x * inverse_scale);
    return (int32_t)(!(q > low) ? low : q > high ? high : q);
}

/* q + change between -128 and 127, rounded down or up at random, so that its mean is exact; q for NaN. */
static inline int8_t ag_quantized_step(int32_t q, float change, uint32_t random) {
    const float whole = floorf(change), fraction = change - whole;
    const float sum =
        (float)q + whole + (fraction > (float)(random >> 8) * 5.9604644775390625e-8f ? 1.0f : 0.0f);
    return (int8_t)(sum > 127.0f ? 127.0f : sum < -128.0f ? -128.0f : sum == sum ? sum : (float)q);
}

/* a + b, which have different scales and zeros: both are shifted left by `left` bits and brought to a common
 * scale, and their sum is brought to the scale of the result. A term with a negative multiplier is
 * subtracted. */
static inline int32_t ag_unlimited_sum(int32_t a, int32_t a_zero, int32_t a_multiplier, int32_t a_shift,
                                       int32_t b, int32_t b_zero, int32_t b_multiplier, int32_t b_shift,
                                       int32_t left, int32_t multiplier, int32_t shift, int32_t zero) {
    const int32_t first = ag_requantized((a - a_zero) * (1 << left), a_multiplier, a_shift);
    const int32_t second = ag_requantized((b - b_zero) * (1 << left), b_multiplier, b_shift);
    return ag_requantized(first + second, multiplier, shift) + zero;
}

/* The same between low and high. */
static inline int8_t ag_quantized_sum(int32_t a, int32_t a_zero, int32_t a_multiplier, int32_t a_shift,
                                      int32_t b, int32_t b_zero, int32_t b_multiplier, int32_t b_shift,
                                      int32_t left, int32_t multiplier, int32_t shift, int32_t zero,
                                      int32_t low, int32_t high) {
    const int32_t v = ag_unlimited_sum(a, a_zero, a_multiplier, a_shift, b, b_zero, b_multiplier, b_shift,
                                       left, multiplier, shift, zero);
    return (int8_t)ag_limited(v, low, high);
}

/* a * b, which have different zeros. */
static inline int32_t ag_unlimited_product(int32_t a, int32_t a_zero, int32_t b, int32_t b_zero,
                                           int32_t multiplier, int32_t shift, int32_t zero) {
    return ag_requantized((a - a_zero) * (b - b_zero), multiplier, shift) + zero;
}

/* The same between low and high. */
static inline int8_t ag_quantized_product(int32_t a, int32_t a_zero, int32_t b, int32_t b_zero,
                                          int32_t multiplier, int32_t shift, int32_t zero, int32_t low,
                                          int32_t high) {
    return (int8_t)ag_limited(ag_unlimited_product(a, a_zero, b, b_zero, multiplier, shift, zero), low, high);
}

#endif
