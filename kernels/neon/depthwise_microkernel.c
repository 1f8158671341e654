/* The sums of tiles/lanes.h: four results of eight channels at a time, so that a weight is fetched once for
 * them; then one by one. */
#include "channel_tile.h"
#include "tiles/depthwise_microkernel.h"
#include "vec.h"

static inline const float *stepped(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

#define BEGIN(r)                                                                                             \
    const float *a##r = stepped(first, r * s->a_next);                                                       \
    float32x4_t low##r = start_low, high##r = start_high;
#define ADD(r)                                                                                               \
    low##r = vfmaq_f32(low##r, vld1q_f32(a##r), w_low);                                                      \
    high##r = vfmaq_f32(high##r, vld1q_f32(a##r + 4), w_high);                                               \
    a##r = stepped(a##r, a_step);
#define SKIP(r) a##r = stepped(a##r, s->a_skip);
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
                b = stepped(b, b_step);                                                                      \
                each(ADD)                                                                                    \
            }                                                                                                \
            each(SKIP) b = stepped(b, s->b_skip);                                                            \
        }                                                                                                    \
        each(END)                                                                                            \
    }

void AG_DEPTHWISE_MICROKERNEL(const ag_depthwise_tile *s) {
    const float32x4_t start_low = vld1q_f32(s->start), start_high = vld1q_f32(s->start + 4);
    const int32_t a_step = s->a_step, b_step = s->b_step;
    const float *first = s->a;
    float *c = s->c;
    int32_t left = s->count;
    for (; left >= 4; left -= 4) {
        RESULTS(FOUR)
        first = stepped(first, 4 * s->a_next);
    }
    for (; left > 0; left--) {
        RESULTS(ONE)
        first = stepped(first, s->a_next);
    }
}
