/* exp, sigmoid, tanh, erf, sin and cos of ag_math.h in fewer instructions, for cores with FMA and loops
 * without vectors: e^x from a table of 2^(i/64), 256 bytes, and a polynomial of degree 2 in place of 6. A
 * term of a polynomial is two instructions, as VFMA adds to its own destination; loading an element of the
 * table takes five in all.
 *
 * Where the result is a normal float, the relative error is at most 2.5e-7, with or without contraction into
 * FMA. Zeros, infinities, NaN and subnormals use ag_math.h. */
#ifndef AG_MATH_FMA_H
#define AG_MATH_FMA_H

#include "ag_math.h"

/* A path that is not inlined: compilers load the constants of all paths of a loop in each of its iterations.
 */
#if defined(__GNUC__)
#define AG_CALLED static __attribute__((noinline, unused))
#else
#define AG_CALLED static inline
#endif

/* the bits of 2^(i/64), less those that the addition of i << 17 changes */
static const uint32_t ag_exp2_64ths[64] = {
    0x3f800000u, 0x3f7f64d2u, 0x3f7ecd87u, 0x3f7e3a29u, 0x3f7daac3u, 0x3f7d1f62u, 0x3f7c980fu, 0x3f7c14d5u,
    0x3f7b95c2u, 0x3f7b1adfu, 0x3f7aa43au, 0x3f7a31dcu, 0x3f79c3d3u, 0x3f795a2bu, 0x3f78f4f0u, 0x3f78942du,
    0x3f7837f0u, 0x3f77e046u, 0x3f778d3au, 0x3f773edau, 0x3f76f532u, 0x3f76b051u, 0x3f767043u, 0x3f763516u,
    0x3f75fed7u, 0x3f75cd94u, 0x3f75a15bu, 0x3f757a3au, 0x3f75583fu, 0x3f753b79u, 0x3f7523f6u, 0x3f7511c4u,
    0x3f7504f3u, 0x3f74fd92u, 0x3f74fbafu, 0x3f74ff5bu, 0x3f7508a4u, 0x3f75179au, 0x3f752c4du, 0x3f7546cdu,
    0x3f75672au, 0x3f758d75u, 0x3f75b9beu, 0x3f75ec15u, 0x3f76248cu, 0x3f766334u, 0x3f76a81eu, 0x3f76f35bu,
    0x3f7744fdu, 0x3f779d16u, 0x3f77fbb8u, 0x3f7860f5u, 0x3f78ccdfu, 0x3f793f89u, 0x3f79b907u, 0x3f7a396au,
    0x3f7ac0c7u, 0x3f7b4f30u, 0x3f7be4bau, 0x3f7c8177u, 0x3f7d257du, 0x3f7dd0dfu, 0x3f7e83b3u, 0x3f7f3e0cu,
};

/* x = k ln2/64 + r with |r| <= ln2/128, and the bits of shifted are 0x4b400000 + k */
typedef struct ag_exp_64ths {
    float shifted, r;
} ag_exp_64ths;

static inline ag_exp_64ths ag_exp_reduce_64ths(float x) {
    const float round = 12582912.0f; /* as in ag_math.h's ag_exp_reduce */
    ag_exp_64ths p;
    p.shifted = x * 92.33248f + round;
    const float k = p.shifted - round;
    p.r = (x - k * 0.010833740234375f) -
          k * -3.3155382e-06f; /* ln2/64 in 11 bits, so that the product is exact, and the rest */
    return p;
}

/* whether 2^(k/64) is a normal float, for |k| <= 8064; false for NaN and where shifted does not hold k */
static inline int ag_exp_is_normal(ag_exp_64ths p) {
    return ag_float_bits(p.shifted) - (0x4b400000u - 8064u) <= 16128u;
}

/* 2^(k/64), of the bits 0x4b400000 + k */
static inline float ag_power_of_64ths(uint32_t k) {
    return ag_bits_float(ag_exp2_64ths[k & 63u] + (k << 17));
}

/* 2^(k/64) e^r */
static inline float ag_exp_of_64ths(ag_exp_64ths p) {
    const float power = ag_power_of_64ths(ag_float_bits(p.shifted));
    return power + power * (p.r + 0.5f * p.r * p.r);
}

static inline float ag_expf_fma(float x) {
    const ag_exp_64ths p = ag_exp_reduce_64ths(x);
    return ag_exp_is_normal(p) ? ag_exp_of_64ths(p) : ag_exp_any(x);
}

static inline float ag_sigmoidf_fma(float x) {
    const ag_exp_64ths p = ag_exp_reduce_64ths(-x);
    return ag_exp_is_normal(p) ? 1.0f / (1.0f + ag_exp_of_64ths(p)) : ag_sigmoid_any(x);
}

/* (tanh(a) / a - 1) / z for |a| <= 0.5, of z = a^2 */
static inline float ag_tanh_near_fma(float z) {
    return ag_polynomial_3(z, 0.017241394f, -0.05304545f, 0.13325879f, -0.33333144f);
}

/* (e^2x - 1) / (e^2x + 1), of e^2x = 2^(k/64) (1 + h) / (1 - h) and h = x - k ln2/128 */
static inline float ag_tanh_far_fma(float x) {
    const float round = 12582912.0f;
    const float shifted = x * 184.66496f + round;
    const float k = shifted - round;
    const float h = (x - k * 0.0054168701171875f) - k * -1.6577691e-06f;
    const float power = ag_power_of_64ths(ag_float_bits(shifted));
    const float more = 1.0f + h, less = 1.0f - h;
    return (power * more - less) / (power * more + less);
}

static inline float ag_tanhf_fma(float x) {
    const uint32_t a = ag_float_bits(x) & 0x7fffffffu;
    if (a - 1u < 0x3f000000u - 1u) { /* 0 < |x| < 0.5 */
        return x + x * (x * x) * ag_tanh_near_fma(x * x);
    }
    return a - 0x3f000000u < 0x03000000u ? ag_tanh_far_fma(x) : ag_tanh_any(x); /* 0.5 <= |x| < 32 */
}

/* for 0.8 <= |x| <= 4 */
AG_CALLED float ag_erf_far_fma(float x) {
    const float far = 1.0f - ag_exp_of_64ths(ag_exp_reduce_64ths(ag_erf_far(fabsf(x))));
    return ag_with_sign_of(far, x);
}

static inline float ag_erff_fma(float x) {
    const uint32_t a = ag_float_bits(x) & 0x7fffffffu;
    if (a < 0x3f4ccccdu) { /* |x| < 0.8 */
        return x + x * ag_erf_near(x * x);
    }
    return a <= 0x40800000u ? ag_erf_far_fma(x) : ag_erf_any(x);
}

/* sin(x + quadrant pi/2) for |x| < 2^18 */
static inline float ag_sin_near_fma(float x, uint32_t quadrant) {
    const float round = 12582912.0f; /* as in ag_math.h's ag_exp_reduce */
    const float shifted = x * 0.63661975f + round;
    const float k = shifted - round;
    /* x - k pi/2, with pi/2 in three parts: the first difference is exact, and rounding errors of the others
     * are relative to the result */
    const float r = fmaf(k, 1.7151245e-15f, fmaf(k, 4.371139e-08f, fmaf(k, -1.5707964f, x)));
    const float z = r * r;
    quadrant += ag_float_bits(shifted);
    /* the polynomials of ag_math.h's ag_trig_value; a product, so that -0 stays -0 */
    const float y =
        quadrant & 1u
            ? 1.0f - z * (0.5f - z * ag_polynomial_2(z, 2.4432327e-05f, -0.001388731f, 0.041666646f))
            : r * (1.0f + z * ag_polynomial_2(z, -0.00019518095f, 0.008332188f, -0.16666655f));
    return quadrant & 2u ? -y : y;
}

AG_CALLED float ag_sin_any(float x) {
    return ag_sinf(x);
}

AG_CALLED float ag_cos_any(float x) {
    return ag_cosf(x);
}

static inline float ag_sinf_fma(float x) {
    return fabsf(x) < 262144.0f ? ag_sin_near_fma(x, 0u) : ag_sin_any(x);
}

static inline float ag_cosf_fma(float x) {
    return fabsf(x) < 262144.0f ? ag_sin_near_fma(x, 1u) : ag_cos_any(x);
}

#endif
