/* float exp, log, tanh, ... with the same bits on every core: C99 arithmetic in a fixed order, integers where
 * float would lose digits, and from libm nothing but the exact fabsf and floorf.
 *
 * Same bits need float evaluated as float and no contraction into FMA (-ffp-contract=off). Arguments are all
 * floats: 0, -0, infinities, NaN and subnormals give what C99 annex F says; a NaN result is always
 * 0x7fc00000. Largest errors in ulp against float64, measured over all floats (sin and cos: every third; pow:
 * 200 million pairs, half of them with y log2(x) spread over the whole range; atan2: 250 million pairs):
 *
 *   ag_expf 0.90   ag_logf 0.87   ag_expm1f 1.50   ag_log1pf 0.90   ag_tanhf 1.43   ag_sigmoidf 1.82
 *   ag_erff 1.61   ag_rintf 0.00   ag_sinf 1.57 and ag_cosf 1.57, however large the angle   ag_powf 0.56
 *   ag_atan2f 1.78
 *
 * The polynomials are minimax fits of the functions in the comments next to them, computed for this file:
 * least squares in a Chebyshev basis, reweighted until the relative error is level, then rounded to float or
 * to the stated fixed-point format. */
#ifndef AG_MATH_H
#define AG_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2
#error ag_math.h: this target computes float in long double; on x86 add -msse2 -mfpmath=sse
#endif

/* Where nothing is vectorised, common arguments take a fast path with the same bits; the general path is not
 * inlined. */
#ifndef AG_MATH_SHORTCUTS
#if defined(__arm__) /* no float vectors: AArch32's NEON flushes subnormals, which is not IEEE 754 */
#define AG_MATH_SHORTCUTS 1
#else
#define AG_MATH_SHORTCUTS 0
#endif
#endif
#if defined(__GNUC__)
#define AG_MATH_ALWAYS static inline __attribute__((always_inline))
#else
#define AG_MATH_ALWAYS static inline
#endif
#if defined(AG_MATH_NO_TRAPS) /* a loop that calls a function is not vectorised */
#define AG_MATH_INLINE AG_MATH_ALWAYS
#else
#define AG_MATH_INLINE static inline
#endif
#if AG_MATH_SHORTCUTS && defined(__GNUC__)
#define AG_MATH_RARE static __attribute__((noinline, cold, unused))
#else
#define AG_MATH_RARE AG_MATH_INLINE
#endif

/* Polynomials of a degree, the coefficient of the highest power first, by Horner's rule. */
AG_MATH_ALWAYS float ag_polynomial_2(float x, float c2, float c1, float c0) {
    return (c2 * x + c1) * x + c0;
}

AG_MATH_ALWAYS float ag_polynomial_3(float x, float c3, float c2, float c1, float c0) {
    return ag_polynomial_2(x, c3 * x + c2, c1, c0);
}

AG_MATH_ALWAYS float ag_polynomial_4(float x, float c4, float c3, float c2, float c1, float c0) {
    return ag_polynomial_3(x, c4 * x + c3, c2, c1, c0);
}

AG_MATH_ALWAYS float ag_polynomial_5(float x, float c5, float c4, float c3, float c2, float c1, float c0) {
    return ag_polynomial_4(x, c5 * x + c4, c3, c2, c1, c0);
}

AG_MATH_ALWAYS float ag_polynomial_6(float x, float c6, float c5, float c4, float c3, float c2, float c1,
                                     float c0) {
    return ag_polynomial_5(x, c6 * x + c5, c4, c3, c2, c1, c0);
}

AG_MATH_ALWAYS float ag_polynomial_7(float x, float c7, float c6, float c5, float c4, float c3, float c2,
                                     float c1, float c0) {
    return ag_polynomial_6(x, c7 * x + c6, c5, c4, c3, c2, c1, c0);
}

static inline uint32_t ag_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float ag_bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a where `which` holds, otherwise b. Compilers that honour floating-point traps do not vectorise a loop with
 * conditional arithmetic; AG_MATH_NO_TRAPS says that this one has -fno-trapping-math. */
static inline float ag_select(int which, float a, float b) {
#if AG_MATH_SHORTCUTS || defined(AG_MATH_NO_TRAPS)
    return which ? a : b;
#else
    const uint32_t mask = 0u - (uint32_t)(which != 0);
    return ag_bits_float((ag_float_bits(a) & mask) | (ag_float_bits(b) & ~mask));
#endif
}

/* y, or the canonical NaN when x is NaN: processors differ in the sign and payload of the NaN that they
 * propagate. */
static inline float ag_unless_nan(float x, float y) {
    return ag_select(x == x, y, ag_bits_float(0x7fc00000u));
}

static inline float ag_with_sign_of(float magnitude, float x) {
    return ag_bits_float((ag_float_bits(magnitude) & 0x7fffffffu) | (ag_float_bits(x) & 0x80000000u));
}

/* x = n ln2 + high - low for |x| <= 150, |high - low| <= ln2/2 (1 + 2^-20); high is exact, low below 2^-12 */
typedef struct ag_exp_parts {
    float high, low;
    int32_t n;
} ag_exp_parts;

static inline ag_exp_parts ag_exp_reduce(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: a sum with it is an integer, held in its low bits */
    const float shifted = x * 1.442695f + round;
    const float n = shifted - round;
    ag_exp_parts p;
    p.high = x - n * 0.69314575f; /* ln2 in 16 bits, so that the product is exact, and the rest */
    p.low = n * 1.4286068e-06f;
    p.n = (int32_t)(ag_float_bits(shifted) - 0x4b400000u);
    return p;
}

/* 2^n for -126 <= n <= 127 */
static inline float ag_pow2i(int32_t n) {
    return ag_bits_float(((uint32_t)n << 23) +
                         0x3f800000u); /* shifted first: a constant part of n vanishes */
}

/* e^(high - low) */
static inline float ag_exp_rest(ag_exp_parts p) {
    const float r = p.high - p.low;
    /* (e^r - 1 - r) / r^2 */
    const float q = ag_polynomial_4(r, 0.001381454f, 0.008368745f, 0.04166839f, 0.16666521f, 0.49999994f);
    return 1.0f + (p.high + (r * r * q - p.low));
}

AG_MATH_RARE float ag_exp_any(float x) {
    const uint32_t a = ag_float_bits(x) & 0x7fffffffu; /* e^-104 rounds to 0, e^104 to infinity */
    const float limited = ag_bits_float(a < 0x42d00000u ? a : 0x42d00000u);
    const ag_exp_parts p = ag_exp_reduce(ag_with_sign_of(limited, x));
    const uint32_t n = (uint32_t)p.n << 23, half = (uint32_t)p.n >> 1 << 23; /* exponents */
    /* two factors, as 2^n may be no float; only the second rounds */
    const float y = ag_bits_float(ag_float_bits(ag_exp_rest(p)) + half);
    return ag_unless_nan(x, y * ag_bits_float(n - half + 0x3f800000u));
}

/* e^x for |x| <= 87, where it is neither subnormal nor infinite */
static inline float ag_exp_normal(float x) {
    const ag_exp_parts p = ag_exp_reduce(x);
    return ag_exp_rest(p) * ag_pow2i(p.n);
}

AG_MATH_INLINE float ag_expf(float x) {
    return AG_MATH_SHORTCUTS && fabsf(x) <= 87.0f ? ag_exp_normal(x) : ag_exp_any(x);
}

AG_MATH_INLINE float ag_expm1f(float x) {
    const float low = ag_select(x < -18.0f, -18.0f, x); /* e^-18 - 1 rounds to -1 */
    const ag_exp_parts p = ag_exp_reduce(ag_select(low > 89.0f, 89.0f, low));
    const float r = p.high - p.low;
    /* (e^r - 1 - r) / r^2 */
    const float q =
        ag_polynomial_5(r, 0.00019845882f, 0.0013940668f, 0.00833339f, 0.04166636f, 0.16666666f, 0.5f);
    const float half = ag_pow2i(p.n - 1); /* 2^n (e^r - 1) + (2^n - 1), halved, as 2^128 is no float */
    const float y = 2.0f * ((half - 0.5f) + half * (p.high + (r * r * q - p.low)));
    return ag_unless_nan(x, ag_select(fabsf(x) < 2.9802322e-08f, x, y));
}

/* x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for normal x > 0 */
typedef struct ag_log_parts {
    float f;
    float e;
} ag_log_parts;

static inline ag_log_parts ag_log_reduce(float x) {
    const uint32_t above = ag_float_bits(x) - 0x3f3504f3u; /* the bits of sqrt(1/2) */
    ag_log_parts p;
    p.f = ag_bits_float((above & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    p.e = (float)((int32_t)above >> 23);
    return p;
}

/* ln(2^e (1 + f)) + extra, with |extra| much smaller than the rest unless f and e are 0 */
static inline float ag_log_sum(float f, float e, float extra) {
    const float s = f * f;
    /* (ln(1 + f) - f + f^2 / 2) / f^3 */
    const float q = ag_polynomial_7(f, -0.07634488f, 0.12761962f, -0.13160364f, 0.14201719f, -0.16623336f,
                                    0.20001228f, -0.25000823f, 0.3333333f);
    const float tail = (s * f * q + (e * 1.4286068e-06f + extra)) - 0.5f * s;
    return e * 0.69314575f + (f + tail); /* ln2 in two parts, as in ag_exp_reduce */
}

AG_MATH_RARE float ag_log_any(float x) {
    const int tiny = x < 1.17549435e-38f;
    const ag_log_parts p = ag_log_reduce(ag_select(tiny, x * 8388608.0f, x));
    const float y = ag_log_sum(p.f, ag_select(tiny, p.e - 23.0f, p.e), 0.0f);
    const float finite = ag_select(x == INFINITY, x, y);
    return ag_select(x > 0.0f, finite, ag_bits_float(x == 0.0f ? 0xff800000u : 0x7fc00000u));
}

AG_MATH_INLINE float ag_logf(float x) {
    if (AG_MATH_SHORTCUTS && ag_float_bits(x) - 0x00800000u < 0x7f000000u) { /* normal and positive */
        const ag_log_parts p = ag_log_reduce(x);
        return ag_log_sum(p.f, p.e, 0.0f);
    }
    return ag_log_any(x);
}

AG_MATH_INLINE float ag_log1pf(float x) {
    const float u = 1.0f + x;
    const float big = ag_select(
        x > 1.0f, x, 1.0f); /* the rounding error of u: exact when the larger summand is subtracted first */
    const float lost = ag_select(x > 1.0f, 1.0f, x) - (u - big);
    const ag_log_parts p = ag_log_reduce(u);
    const float y = ag_log_sum(p.f, p.e, lost / u);
    const float finite = ag_select((x == INFINITY) | (fabsf(x) < 2.9802322e-08f), x, y);
    return ag_select(x > -1.0f, finite, ag_bits_float(x == -1.0f ? 0xff800000u : 0x7fc00000u));
}

/* (tanh(a) / a - 1) / a^2 for a <= 0.55, of z = a^2 */
static inline float ag_tanh_near(float z) {
    return ag_polynomial_4(z, -0.0062428494f, 0.021050714f, -0.053847548f, 0.13332544f, -0.33333316f);
}

AG_MATH_RARE float ag_tanh_any(float x) {
    const float a = fabsf(x);
    const float z = a * a;
    const float near = a + a * z * ag_tanh_near(z);
    const float most = ag_select(a > 20.0f, 20.0f, a); /* tanh(20) rounds to 1 */
    const float far = 1.0f - 2.0f / (ag_exp_normal(2.0f * most) + 1.0f);
    return ag_unless_nan(x, ag_with_sign_of(ag_select(a < 0.55f, near, far), x));
}

AG_MATH_INLINE float ag_tanhf(float x) {
    const uint32_t a = ag_float_bits(x) & 0x7fffffffu;
    if (AG_MATH_SHORTCUTS && a - 1u < 0x3f0ccccdu - 1u) { /* 0 < |x| < 0.55 */
        return x + x * (x * x) * ag_tanh_near(x * x);
    }
    if (AG_MATH_SHORTCUTS && a - 0x3f0ccccdu < 0x03000000u) { /* 0.55 <= |x| < 35.2 */
        const float far = 1.0f - 2.0f / (ag_exp_normal(2.0f * fabsf(x)) + 1.0f);
        return x < 0.0f ? -far : far;
    }
    return ag_tanh_any(x);
}

AG_MATH_RARE float ag_sigmoid_any(float x) {
    const float z = ag_expf(-fabsf(x));
    const int negative = x < 0.0f;
    const float y = ag_select(negative, z, 1.0f) / (1.0f + z);
    /* z - z y is z / (1 + z) with one rounding less */
    return ag_unless_nan(x, ag_select(negative, z - z * y, y));
}

/* 1 / (1 + e^-x), from e^-|x|, so that nothing overflows and small results keep their digits */
AG_MATH_INLINE float ag_sigmoidf(float x) {
    if (AG_MATH_SHORTCUTS && fabsf(x) <= 87.0f) {
        const float z = ag_exp_normal(-fabsf(x));
        return x < 0.0f ? z - z * (z / (1.0f + z)) : 1.0f / (1.0f + z);
    }
    return ag_sigmoid_any(x);
}

/* erf(a) / a - 1 for 0 <= a <= 0.8, of z = a^2 */
static inline float ag_erf_near(float z) {
    return ag_polynomial_5(z, -0.0006535235f, 0.00508513f, -0.026820807f, 0.11283113f, -0.37612602f,
                           0.12837917f);
}

/* ln(1 - erf(b)) for 0.8 <= b <= 4 */
static inline float ag_erf_far(float b) {
    return ag_polynomial_6(b, 0.00020745467f, -0.0031536154f, 0.022656191f, -0.10479871f, -0.63622195f,
                           -1.1282289f, -6.5977263e-05f);
}

AG_MATH_RARE float ag_erf_any(float x) {
    const float a = fabsf(x);
    const float near = a + a * ag_erf_near(a * a);
    const float far = 1.0f - ag_exp_normal(ag_erf_far(ag_select(a > 4.0f, 4.0f, a))); /* erf(4) rounds to 1 */
    return ag_unless_nan(x, ag_with_sign_of(ag_select(a < 0.8f, near, far), x));
}

/* 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x */
AG_MATH_INLINE float ag_erff(float x) {
    const uint32_t a = ag_float_bits(x) & 0x7fffffffu;
    if (AG_MATH_SHORTCUTS && a < 0x3f4ccccdu) { /* |x| < 0.8 */
        return x + x * ag_erf_near(x * x);
    }
    if (AG_MATH_SHORTCUTS && a <= 0x40800000u) { /* 0.8 <= |x| <= 4 */
        const float far = 1.0f - ag_exp_normal(ag_erf_far(fabsf(x)));
        return x < 0.0f ? -far : far;
    }
    return ag_erf_any(x);
}

/* Rounds to the nearest integer, ties to even: a float from 2^23 on is an integer, and adding 2^23 rounds. */
AG_MATH_INLINE float ag_rintf(float x) {
    const float a = fabsf(x);
    const float y = a < 8388608.0f ? (a + 8388608.0f) - 8388608.0f : a;
    return ag_unless_nan(x, ag_with_sign_of(y, x));
}

/* |x| = (4 j + quadrant) pi/2 + r with |r| <= pi/4 (1 + 2^-23), for any finite x: the product with 2/pi is
 * computed in integers, with only the bits of 2/pi that matter modulo 4 (Payne-Hanek reduction). */
typedef struct ag_trig_parts {
    float r;
    uint32_t quadrant;
} ag_trig_parts;

static inline ag_trig_parts ag_trig_reduce(float x) {
    static const uint32_t two_over_pi[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                            0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    const uint32_t bits = ag_float_bits(x) & 0x7fffffffu;
    const uint32_t m = (bits & 0x007fffffu) | 0x00800000u;
    const uint32_t from = bits >= 0x3c000000u ? (bits >> 23) - 120u : 0u;
    const uint32_t *word = two_over_pi + (from >> 5);
    const uint32_t left = from & 31u;
    const uint32_t w0 = (uint32_t)(((uint64_t)word[0] << 32 | word[1]) >> (32u - left));
    const uint32_t w1 = (uint32_t)(((uint64_t)word[1] << 32 | word[2]) >> (32u - left));
    const uint32_t w2 = (uint32_t)(((uint64_t)word[2] << 32 | word[3]) >> (32u - left));
    /* |x| 2/pi modulo 4, in units of 2^-62 */
    const uint64_t scaled = ((uint64_t)(m * w0) << 32) + (uint64_t)m * w1 + ((uint64_t)m * w2 >> 32);
    const uint64_t quadrant = (scaled + ((uint64_t)1 << 61)) >> 62;
    /* the rest, shifted up to keep 31 digits, times pi/2 */
    const int64_t rest = (int64_t)(scaled - (quadrant << 62));
    const uint32_t up = (188u - ((ag_float_bits((float)rest) >> 23) & 0xffu)) & 63u;
    const int64_t product = ((rest * ((int64_t)1 << up)) >> 31) * 1686629713; /* pi/2 * 2^30 */
    const int small = bits <= 0x3f490fdbu;                                    /* pi/4 */
    ag_trig_parts p;
    p.r = small ? fabsf(x) : (float)product * ag_pow2i(-61 - (int32_t)up);
    p.quadrant = small ? 0u : (uint32_t)quadrant & 3u;
    return p;
}

/* sin(quadrant pi/2 + r) */
static inline float ag_trig_value(float r, uint32_t quadrant) {
    const float z = r * r;
    /* (sin(r) / r - 1) / z */
    const float s = ag_polynomial_2(z, -0.00019518095f, 0.008332188f, -0.16666655f);
    /* (cos(r) - 1 + z / 2) / z^2 */
    const float c = ag_polynomial_2(z, 2.4432327e-05f, -0.001388731f, 0.041666646f);
    const float y = quadrant & 1u ? 1.0f - (0.5f * z - z * z * c) : r + r * z * s;
    return quadrant & 2u ? -y : y;
}

static inline float ag_sinf(float x) {
    const ag_trig_parts p = ag_trig_reduce(x);
    const float y = ag_trig_value(p.r, p.quadrant);
    return ag_unless_nan(x - x, ag_float_bits(x) & 0x80000000u ? -y : y);
}

static inline float ag_cosf(float x) {
    const ag_trig_parts p = ag_trig_reduce(x);
    return ag_unless_nan(x - x, ag_trig_value(p.r, p.quadrant + 1u));
}

/* The angle of (x, y) from the x axis, between -pi and pi */
AG_MATH_INLINE float ag_atan2f(float y, float x) {
    const float ax = fabsf(x), ay = fabsf(y);
    const float small = ag_select(ay < ax, ay, ax), big = ag_select(ay < ax, ax, ay);
    const int quotient = small != big; /* otherwise 0 / 0, 1, or infinity / infinity */
    const float t =
        ag_select(quotient, small / ag_select(quotient, big, 1.0f), ag_select(big > 0.0f, 1.0f, 0.0f));
    const float z = t * t;
    /* (atan(t) / t - 1) / z */
    const float q = ag_polynomial_7(z, 0.0029745637f, -0.016581083f, 0.043553386f, -0.075805664f, 0.10678935f,
                                    -0.14214209f, 0.19994137f, -0.33333167f);
    float angle = t + t * z * q;
    angle =
        ag_select(ay > ax, 1.5707964f - (angle + 4.371139e-08f), angle); /* pi/2, and its rounding error */
    angle = ag_select(ag_float_bits(x) >> 31 != 0u, 3.1415927f - (angle + 8.742278e-08f), angle);
    return ag_unless_nan(x, ag_unless_nan(y, ag_with_sign_of(angle, y)));
}

/* log2 of a positive float with 37 correct bits, normalised: value * 2^-scale with 2^37 <= |value| < 2^38, or
 * 0 */
typedef struct ag_log2_fixed {
    int64_t value;
    int32_t scale;
} ag_log2_fixed;

static inline ag_log2_fixed ag_log2_reduce(float x) {
    static const int64_t c[13] = {/* log2(1 + f) / f, units of 2^-38 */
                                  396564993192, -198282496716, 132188335038, -99141224805, 79312526873,
                                  -66095263623, 56673066070,   -49560649962, 43642102094,  -39350366821,
                                  39789181547,  -39264976491,  21267471982};
    const int tiny = x < 1.17549435e-38f;
    const uint32_t above = ag_float_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3u;
    const int32_t e = ((int32_t)above >> 23) - (tiny ? 23 : 0);
    const float one_f = ag_bits_float((above & 0x007fffffu) + 0x3f3504f3u);
    const int32_t f = (int32_t)((one_f - 1.0f) * 16777216.0f); /* exact */
    int64_t sum = c[12];
    for (int i = 11; i >= 0; i--) {
        sum = c[i] + ((sum * f) >> 24);
    }
    ag_log2_fixed result;
    result.value = e == 0 ? sum * f : (int64_t)e * ((int64_t)1 << 55) + ((sum * f) >> 7);
    result.scale = e == 0 ? 62 : 55;
    for (int32_t step = 16; step > 0; step >>= 1) {
        const int64_t magnitude = result.value < 0 ? -result.value : result.value;
        const int32_t by = magnitude >> (37 + step) != 0 ? step : 0;
        result.value >>= by;
        result.scale -= by;
    }
    return result;
}

/* 2^(t * 2^-40) as the bits of a float, rounded to nearest even */
static inline uint32_t ag_exp2_fixed(int64_t t) {
    static const uint32_t c[8] = {/* 2^u for 0 <= u < 1, units of 2^-31 */
                                  2147483648u, 1488522248u, 515882233u, 119196352u,
                                  20645944u,   2882489u,    308214u,    46168u};
    const int64_t limit = (int64_t)200 << 40;
    const int64_t high = t > limit ? limit : t;
    const int64_t clamped = high < -limit ? -limit : high;
    const int32_t n = (int32_t)(clamped >> 40);
    const uint64_t u = (uint64_t)(clamped >> 8) & 0xffffffffu;
    uint64_t sum = c[7];
    for (int i = 6; i >= 0; i--) {
        sum = c[i] + ((sum * u) >> 32);
    }
    const int32_t below = n < -126 ? -126 - n : 0; /* digits that a subnormal lacks */
    const uint32_t drop = below > 32 ? 40u : (uint32_t)(below + 8);
    const uint64_t odd = (sum >> drop) & 1u;
    const uint64_t rounded = (sum + (((uint64_t)1 << (drop - 1u)) - 1u) + odd) >> drop;
    const uint32_t exponent = n < -126 ? 0u : (uint32_t)(n + 126) << 23;
    return n >= 128 ? 0x7f800000u : exponent + (uint32_t)rounded;
}

/* x to the power y, in integers but for the special cases: no digit is lost when y log2(x) is large */
static inline float ag_powf(float x, float y) {
    const uint32_t xb = ag_float_bits(x) & 0x7fffffffu;
    const uint32_t yb = ag_float_bits(y) & 0x7fffffffu;
    const int negative_y = y < 0.0f;
    const ag_log2_fixed l = ag_log2_reduce(fabsf(x));
    const int32_t y_mantissa = (int32_t)((yb & 0x007fffffu) | 0x00800000u);
    const int64_t product = l.value * (negative_y ? -y_mantissa : y_mantissa);
    const int32_t shift = l.scale - 40 - ((int32_t)(yb >> 23) - 150);
    const int32_t right = shift > 63 ? 63 : shift;
    uint32_t bits =
        ag_exp2_fixed(product >> (right < 0 ? 0 : right)); /* right < 0: beyond every float already */
    if (xb == 0u || xb == 0x7f800000u) {
        bits = (xb == 0u) == negative_y ? 0x7f800000u : 0u;
    }
    /* y is an integer when it has no digit below the point, odd when the digit before the point is 1 */
    const float half = 0.5f * y;
    const int integer = floorf(y) == y;
    const int odd = integer && floorf(half) != half;
    if (xb != ag_float_bits(x)) {
        if (odd) {
            bits |= 0x80000000u;
        } else if (!integer && xb != 0u && xb != 0x7f800000u) {
            bits = 0x7fc00000u;
        }
    }
    bits = x == x && y == y ? bits : 0x7fc00000u;
    return x == 1.0f || y == 0.0f ? 1.0f : ag_bits_float(bits);
}

#endif
