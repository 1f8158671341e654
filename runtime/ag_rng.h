/* Random numbers by counter: no state, the same on every core, any element in any order.
 *
 * A number is a function of (key, counter, index), for instance (seed of a tensor, step, logical index). With
 * all arithmetic modulo 2^32:
 *
 *     mix(x):  x ^= x >> 16;  x *= 0x21f0aaad;  x ^= x >> 15;
 *              x *= 0x735a2d97;  x ^= x >> 15                       (a bijection)
 *
 *     s = mix(mix(key + 0x9e3779b9) ^ counter)
 *
 *     t = mix(mix(counter + 0x7f4a7c15) ^ key)
 *
 *     r = mix(mix(index ^ s) + t)
 *
 * r -> float: u = (r >> 8) * 2^-24, exact in float32, 0 <= u < 1. For fixed (key, counter) r is a bijection
 * of index: 2^32 distinct numbers, none twice. s and t do not depend on the index, so a compiler hoists
 * them out of a loop; there are two, so that two streams are not the same sequence at two offsets. Shifts and
 * multipliers of mix are a published result of a search for 32-bit finalisers with low bias (C. Wellons,
 * "Prospecting for Hash Functions").
 */
#ifndef AG_RNG_H
#define AG_RNG_H

#include <stdint.h>

static inline uint32_t ag_rng_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0x735a2d97u;
    x ^= x >> 15;
    return x;
}

/* 32 random bits. */
static inline uint32_t ag_rand_u32(uint32_t key, uint32_t counter, uint32_t index) {
    const uint32_t s = ag_rng_mix(ag_rng_mix(key + 0x9e3779b9u) ^ counter);
    const uint32_t t = ag_rng_mix(ag_rng_mix(counter + 0x7f4a7c15u) ^ key);
    return ag_rng_mix(ag_rng_mix(index ^ s) + t);
}

/* Uniform in [0, 1): a multiple of 2^-24, written in decimals because C++ before 17 has no 0x1p-24f. */
static inline float ag_unitf(uint32_t key, uint32_t counter, uint32_t index) {
    return (float)(ag_rand_u32(key, counter, index) >> 8) * 5.9604645e-08f;
}

/* Uniform in [-bound, bound): (2u - 1) * bound. 2u - 1 is exact in float32, so there is one rounding. */
static inline float ag_uniformf(uint32_t key, uint32_t counter, uint32_t index, float bound) {
    return (2.0f * ag_unitf(key, counter, index) - 1.0f) * bound;
}

/* Uniform in [low, low + span): the product is rounded before the sum, also where the compiler may contract.
 */
static inline float ag_uniform_fromf(uint32_t key, uint32_t counter, uint32_t index, float low, float span) {
    volatile float scaled = ag_unitf(key, counter, index) * span;
    return low + scaled;
}

/* Normal with mean 0 and variance 1, to a good approximation: the sum of twelve uniform numbers of 16 bits,
 * from counters counter ... counter + 5, less its mean. Integers but for the last step, which is exact; |z|
 * <= 6. */
static inline float ag_normalf(uint32_t key, uint32_t counter, uint32_t index) {
    int32_t sum = 0;
    for (uint32_t k = 0; k < 6; k++) {
        const uint32_t r = ag_rand_u32(key, counter + k, index);
        sum += (int32_t)(r >> 16) + (int32_t)(r & 0xffffu);
    }
    return (float)(sum - 6 * 65535) * 1.52587890625e-05f;
}

/* Normal with this mean and standard deviation, rounded as ag_uniform_fromf. */
static inline float ag_normal_fromf(uint32_t key, uint32_t counter, uint32_t index, float mean, float std) {
    volatile float scaled = ag_normalf(key, counter, index) * std;
    return mean + scaled;
}

#endif
