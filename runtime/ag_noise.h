/* Normal noise that only the owner of a secret seed can compute, for differential privacy: the bits are those
 * of ChaCha20 (D. J. Bernstein; RFC 8439), the numbers follow the normal distribution exactly, up to
 * rounding (C. F. F. Karney, "Sampling exactly from the normal distribution", 2016, algorithm N). Integers
 * but for the last step, so that every core draws the same numbers. */
#ifndef AG_NOISE_H
#define AG_NOISE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A block of ChaCha20: 16 words of a 256-bit key, a counter and a nonce. */
void ag_chacha20(const uint32_t key[8], uint32_t counter, const uint32_t nonce[3], uint32_t out[16]);

/* A normal number with mean 0 and variance 1, a function of seed and nonce. */
float ag_noise(const uint32_t seed[8], const uint32_t nonce[3]);

#ifdef __cplusplus
}
#endif
#endif
