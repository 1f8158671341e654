/* ag_rng.h over arrays, for ctypes. */
#include "ag_rng.h"

void rng_bits(uint32_t key, uint32_t counter, const uint32_t *index, uint32_t *result, int32_t n);
void rng_uniform(uint32_t key, uint32_t counter, const uint32_t *index, float bound, float *result,
                 int32_t n);

void rng_bits(uint32_t key, uint32_t counter, const uint32_t *index, uint32_t *result, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = ag_rand_u32(key, counter, index[i]);
    }
}

void rng_uniform(uint32_t key, uint32_t counter, const uint32_t *index, float bound, float *result,
                 int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = ag_uniformf(key, counter, index[i], bound);
    }
}

void rng_uniform_from(uint32_t key, const uint32_t *index, float low, float span, float *result, int32_t n);

void rng_uniform_from(uint32_t key, const uint32_t *index, float low, float span, float *result, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = ag_uniform_fromf(key, 0, index[i], low, span);
    }
}

void rng_normal(uint32_t key, uint32_t counter, const uint32_t *index, float *result, int32_t n);

void rng_normal(uint32_t key, uint32_t counter, const uint32_t *index, float *result, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = ag_normalf(key, counter, index[i]);
    }
}

void rng_normal_from(uint32_t key, const uint32_t *index, float mean, float std, float *result, int32_t n);

void rng_normal_from(uint32_t key, const uint32_t *index, float mean, float std, float *result, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        result[i] = ag_normal_fromf(key, 0, index[i], mean, std);
    }
}
