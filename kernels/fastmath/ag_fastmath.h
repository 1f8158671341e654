/* Faster, less accurate versions of functions of ag_math.h: where the result is a normal float, the relative
 * error is at most 2e-5, with or without contraction into FMA. Zeros, infinities, NaN and subnormals use
 * ag_math.h. For cores without vectors: special cases are branches. */
#ifndef AG_FASTMATH_H
#define AG_FASTMATH_H

#include "ag_math.h"

/* |x| < limit, for a positive limit given by its bits; false for NaN */
static inline int ag_fast_below(float x, uint32_t limit) {
    return (ag_float_bits(x) & 0x7fffffffu) < limit;
}

/* e^x for |x| < 87, to 6.5e-6 */
static inline float ag_fast_exp_normal(float x) {
    const float round = 12582912.0f; /* as in ag_math.h's ag_exp_reduce */
    const float t = x * 1.442695f;   /* log2(e) */
    const float shifted = t + round;
    const float f = t - (shifted - round);
    /* 2^f for |f| <= 1/2, to 2.6e-6 */
    const float q = ag_polynomial_4(f, 0.0095701f, 0.05591786f, 0.24024745f, 0.6931218f, 0.99999926f);
    return ag_bits_float(ag_float_bits(q) + (ag_float_bits(shifted) << 23));
}

static inline float ag_fast_expf(float x) {
    return ag_fast_below(x, 0x42ae0000u) ? ag_fast_exp_normal(x) : ag_expf(x); /* 87 */
}

static inline float ag_fast_sigmoidf(float x) {
    return ag_fast_below(x, 0x42ae0000u) ? 1.0f / (1.0f + ag_fast_exp_normal(-x)) : ag_sigmoidf(x);
}

static inline float ag_fast_logf(float x) {
    if (ag_float_bits(x) - 0x00800000u < 0x7f000000u) { /* normal and positive */
        const ag_log_parts p = ag_log_reduce(x);
        /* ln(1 + f) / f, to 7.4e-6 */
        const float q = ag_polynomial_5(p.f, -0.14292068f, 0.22055946f, -0.25403273f, 0.33258023f,
                                        -0.49990217f, 1.0000046f);
        return p.e * 0.6931472f + p.f * q;
    }
    return ag_logf(x);
}

/* x P(x^2) / Q(x^2), to 9.1e-6 for |x| < 6.2 */
static inline float ag_fast_tanhf(float x) {
    if (ag_fast_below(x, 0x40c66666u)) {
        const float z = x * x;
        const float p = (0.0014901f * z + 0.11445097f) * z + 0.9999909f;
        const float q = ((5.472026e-05f * z + 0.017467295f) * z + 0.44772374f) * z + 1.0f;
        return x * p / q;
    }
    return ag_unless_nan(x, ag_with_sign_of(1.0f, x));
}

/* x P(x^2) / Q(x^2), to 3.8e-6 for |x| < 3.12 */
static inline float ag_fast_erff(float x) {
    if (ag_fast_below(x, 0x4047ae14u)) {
        const float z = x * x;
        const float p = (0.03721289f * z + 0.13282162f) * z + 1.1283749f;
        const float q = ag_polynomial_4(z, -7.499177e-05f, 0.006433348f, 0.08342787f, 0.45098968f, 1.0f);
        return x * p / q;
    }
    return ag_unless_nan(x, ag_with_sign_of(1.0f, x));
}

#endif
