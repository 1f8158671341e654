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

/* A block of ChaCha20: 16 words of a 256-bit key and four words, the counter and the nonce. */
void ag_chacha20(const uint32_t key[8], const uint32_t in[4], uint32_t out[16]);

/* Replaces a key by a function of the key and four words. Applied to all words of a message of known length,
 * block after block, it makes a secret key of the message that says nothing of other messages' keys (the
 * cascade of M. Bellare, R. Canetti and H. Krawczyk, "Pseudorandom functions revisited", 1996). */
void ag_noise_key(uint32_t key[8], const uint32_t in[4]);

/* A normal number with mean 0 and variance 1, a function of key and index. */
float ag_noise(const uint32_t key[8], uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
