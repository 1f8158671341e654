/* The depthwise micro-kernel (tiles/depthwise_microkernel.h): four results of eight channels at a time, so
 * that a weight is loaded once for all four; then one by one. */
#include "tiles/depthwise_microkernel.h"
#include "vec.h"

static inline const float *advance(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

#define BEGIN(r)                                                                                             \
    const float *a##r = advance(first, r * s->a_next);                                                       \
    float32x4_t low##r = init_low, high##r = init_high;
#define ADD(r)                                                                                               \
    low##r = vfmaq_f32(low##r, vld1q_f32(a##r), w_low);                                                      \
    high##r = vfmaq_f32(high##r, vld1q_f32(a##r + 4), w_high);                                               \
    a##r = advance(a##r, a_step);
#define SKIP(r) a##r = advance(a##r, s->a_skip);
#define END(r)                                                                                               \
    vst1q_f32(c, low##r);                                                                                    \
    vst1q_f32(c + 4, high##r);                                                                               \
    c = (float *)(void *)((char *)c + s->c_next);

/* f for each result */
#define ONE(f) f(0)
#define FOUR(f) f(0) f(1) f(2) f(3)
#define RESULTS(each)                                                                                        \
    {                                                                                                        \
        const float *b = s->b;                                                                               \
        each(BEGIN) for (int32_t run = s->k_runs; run > 0; run--) {                                          \
            for (int32_t k = s->k; k > 0; k--) {                                                             \
                const float32x4_t w_low = vld1q_f32(b), w_high = vld1q_f32(b + 4);                           \
                b = advance(b, b_step);                                                                      \
                each(ADD)                                                                                    \
            }                                                                                                \
            each(SKIP) b = advance(b, s->b_skip);                                                            \
        }                                                                                                    \
        each(END)                                                                                            \
    }

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    const float32x4_t init_low = vld1q_f32(s->init), init_high = vld1q_f32(s->init + 4);
    const int32_t a_step = s->a_step, b_step = s->b_step;
    const float *first = s->a;
    float *c = s->c;
    int32_t remaining = s->count;
    for (; remaining >= 4; remaining -= 4) {
        RESULTS(FOUR)
        first = advance(first, 4 * s->a_next);
    }
    for (; remaining > 0; remaining--) {
        RESULTS(ONE)
        first = advance(first, s->a_next);
    }
}
