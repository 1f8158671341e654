/* The depthwise micro-kernel (tiles/depthwise_microkernel.h) in portable C. */
#include "tiles/depthwise_microkernel.h"

static inline const float *advance(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    const float *first = s->a, *init = s->init;
    const int32_t a_step = s->a_step, b_step = s->b_step;
    float *c = s->c;
    for (int32_t count = s->count; count > 0; count--) {
        const float *a = first, *b = s->b;
        float sums[AG_CHANNEL_TILE];
        for (int32_t j = 0; j < AG_CHANNEL_TILE; j++) {
            sums[j] = init[j];
        }
        for (int32_t run = s->k_runs; run > 0; run--) {
            for (int32_t k = s->k; k > 0; k--) {
                for (int32_t j = 0; j < AG_CHANNEL_TILE; j++) {
                    sums[j] += a[j] * b[j];
                }
                a = advance(a, a_step);
                b = advance(b, b_step);
            }
            a = advance(a, s->a_skip);
            b = advance(b, s->b_skip);
        }
        for (int32_t j = 0; j < AG_CHANNEL_TILE; j++) {
            c[j] = sums[j];
        }
        first = advance(first, s->a_next);
        c = (float *)(void *)((char *)c + s->c_next);
    }
}
