/* What generated test vectors call: kernel_vectors.h, and model_vectors.h of an example. */
#ifndef VECTORS_H
#define VECTORS_H

#include <stdint.h>

/* Fill with numbers in [low, low + span), or below `high`: ag_rng.h's, the same on the host. */
void vectors_draw_f32(float *x, uint32_t count, uint32_t key, uint32_t step, float low, float span);
void vectors_draw_u8(uint8_t *x, uint32_t count, uint32_t key, uint32_t step, uint32_t high);
void vectors_draw_s32(int32_t *x, uint32_t count, uint32_t key, uint32_t step, uint32_t high);

/* Set all bits, which reads as NaN: shows elements that are not written. */
void vectors_spoil(void *x, uint32_t bytes);

/* The running test fails unless every |got - want| <= bound. */
void vectors_compare(const char *what, const float *got, const float *want, uint32_t count, float bound);

/* The running test fails unless all bytes are equal. */
void vectors_equal(const char *what, const void *got, const void *want, uint32_t bytes);

/* The running test fails unless the call's status is the wanted one. */
void vectors_status(const char *call, int status, int wanted);

#endif
