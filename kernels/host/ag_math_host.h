/* exp, sigmoid, tanh and erf of ag_math.h in fewer instructions, for vectors: one path for all arguments.
 *
 * Where the result is a normal float, the relative error is at most 4e-7, with or without contraction into
 * FMA. Results that are NaN, zero or infinite are as in ag_math.h. */
#ifndef AG_MATH_HOST_H
#define AG_MATH_HOST_H

#include "ag_math.h"

/* x, but not beyond the float with the bits `limit`. Integers, as compilers compute the results of limits
 * beforehand and then select twice; negative floats are the larger unsigned ones. */
static inline float ag_limited_float(float x, uint32_t limit) {
    const uint32_t bits = ag_float_bits(x);
    const uint32_t above = bits < (limit | 0x80000000u) ? bits : limit | 0x80000000u;
    return ag_bits_float((int32_t)above < (int32_t)limit ? above : limit);
}

AG_MATH_INLINE float ag_expf_host(float x) {
    const float limited = ag_limited_float(x, 0x42d00000u); /* e^-104 rounds to 0, e^104 to infinity */
    const float round = 12583166.0f;                        /* 1.5 * 2^23 + 254 */
    const float shifted = limited * 1.442695f + round;
    const float n = shifted - round;
    const float r = (limited - n * 0.69314575f) - n * 1.4286068e-06f; /* ln2 in two parts, as in ag_math.h */
    /* (e^r - 1 - r) / r^2, by pairs of terms, which do not wait for each other */
    const float square = r * r;
    const float q =
        (0.001381454f * square + (0.008368745f * r + 0.04166839f)) * square + (0.16666521f * r + 0.49999994f);
    /* 2^n in two factors, as it may be no float; the low bits of shifted are n + 2 * 127 */
    const uint32_t both = ag_float_bits(shifted), half = both >> 1;
    const float factor = ag_bits_float(half << 23);
    const float y = factor + factor * (r + square * q);
    return ag_select(x == x, y * ag_bits_float((both - half) << 23), x);
}

AG_MATH_INLINE float ag_sigmoidf_host(float x) {
    return 1.0f / (1.0f + ag_expf_host(-x));
}

/* y with the sign of x, and 1 where |x| > most, or where y is more than 1 by rounding */
static inline float ag_up_to_one(float y, float x, float most) {
    const float inside = ag_select(fabsf(x) > most, 1.0f, y);
    return ag_with_sign_of(ag_select(inside > 1.0f, 1.0f, inside), x);
}

/* x P(x^2) / Q(x^2) for |x| <= 9 */
AG_MATH_INLINE float ag_tanhf_host(float x) {
    const float a = fabsf(x), z = a * a;
    const float p = ag_polynomial_4(z, 1.3354617e-08f, 2.0609048e-05f, 0.0034955859f, 0.13381024f, 1.0f);
    const float q = ag_polynomial_4(z, 7.7765395e-07f, 0.00032856312f, 0.025876973f, 0.4671434f, 1.0f);
    return ag_up_to_one(a * p / q, x, 9.0f);
}

/* x P(x^2) / Q(x^2) for |x| <= 3.92 */
AG_MATH_INLINE float ag_erff_host(float x) {
    const float a = fabsf(x), z = a * a;
    const float p = ag_polynomial_5(z, 2.0500859e-06f, 0.00028488375f, 0.0037656482f, 0.052748818f,
                                    0.19040716f, 1.1283791f);
    const float q =
        ag_polynomial_5(z, 3.8091755e-05f, 0.0011625437f, 0.014969278f, 0.1141094f, 0.5020767f, 1.0f);
    return ag_up_to_one(a * p / q, x, 3.92f);
}

#endif
