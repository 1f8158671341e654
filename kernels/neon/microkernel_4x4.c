/* 4 x 4 micro-kernels of tiles/microkernel.h, for matrices narrower than the main tile and convolutions with
 * few channels: one register per row (nn, tn) or per column (nt, tg) of the tile. */
#include "narrow.h"
#include "tiles/microkernel.h"
#include "vec.h"

typedef struct {
    float32x4_t v[4];
} sums;

#define ZERO_SUMS                                                                                            \
    {                                                                                                        \
        {                                                                                                    \
            vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)                       \
        }                                                                                                    \
    }

static inline const float *advance(const float *p, int32_t bytes) {
    return (const float *)(const void *)((const char *)p + bytes);
}

static inline float *row_of(const ag_tile *t, int32_t i) {
    return (float *)(void *)((char *)t->c + (ptrdiff_t)i * t->c_step);
}

static inline void store_tile(const ag_tile *t, const sums *s) {
    for (int32_t i = 0; i < 4; i++) {
        scale_add4(row_of(t, i), s->v[i], t->alpha, t->beta);
    }
}

static inline sums transposed(const sums *s) {
    const float32x4x2_t low = vzipq_f32(s->v[0], s->v[2]), high = vzipq_f32(s->v[1], s->v[3]);
    const float32x4x2_t first = vzipq_f32(low.val[0], high.val[0]), last = vzipq_f32(low.val[1], high.val[1]);
    const sums result = {{first.val[0], first.val[1], last.val[0], last.val[1]}};
    return result;
}

/* four sums += a column times one lane of each of four vectors */
#define FMA_LANE_OF_EACH(s, column, w0, w1, w2, w3, lane)                                                    \
    s.v[0] = FMA_LANE(s.v[0], column, w0, lane);                                                             \
    s.v[1] = FMA_LANE(s.v[1], column, w1, lane);                                                             \
    s.v[2] = FMA_LANE(s.v[2], column, w2, lane);                                                             \
    s.v[3] = FMA_LANE(s.v[3], column, w3, lane);
/* the same times the four lanes of one vector */
#define FMA_EACH_LANE(s, column, w)                                                                          \
    s.v[0] = FMA_LANE(s.v[0], column, w, 0);                                                                 \
    s.v[1] = FMA_LANE(s.v[1], column, w, 1);                                                                 \
    s.v[2] = FMA_LANE(s.v[2], column, w, 2);                                                                 \
    s.v[3] = FMA_LANE(s.v[3], column, w, 3);

static inline float32x4_t next_b(const float **b, int32_t step) {
    const float32x4_t v = vld1q_f32(*b);
    *b = advance(*b, step);
    return v;
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    const float *a0 = t->a[0], *a1 = t->a[1], *a2 = t->a[2], *a3 = t->a[3], *b = t->b[0];
    const int32_t step = t->b_step;
    sums s = ZERO_SUMS;
    for (int32_t run = t->k_runs;;) {
        int32_t k = t->k;
        for (; k >= 4; k -= 4, a0 += 4, a1 += 4, a2 += 4, a3 += 4) {
            const float32x4_t w0 = vld1q_f32(a0), w1 = vld1q_f32(a1), w2 = vld1q_f32(a2), w3 = vld1q_f32(a3);
            float32x4_t v = next_b(&b, step);
            FMA_LANE_OF_EACH(s, v, w0, w1, w2, w3, 0)
            v = next_b(&b, step);
            FMA_LANE_OF_EACH(s, v, w0, w1, w2, w3, 1)
            v = next_b(&b, step);
            FMA_LANE_OF_EACH(s, v, w0, w1, w2, w3, 2)
            v = next_b(&b, step);
            FMA_LANE_OF_EACH(s, v, w0, w1, w2, w3, 3)
        }
        for (; k > 0; k--) {
            const float32x4_t v = next_b(&b, step);
            s.v[0] = vmlaq_n_f32(s.v[0], v, *a0++);
            s.v[1] = vmlaq_n_f32(s.v[1], v, *a1++);
            s.v[2] = vmlaq_n_f32(s.v[2], v, *a2++);
            s.v[3] = vmlaq_n_f32(s.v[3], v, *a3++);
        }
        if (--run == 0) {
            break;
        }
        a0 = advance(a0, t->a_skip);
        a1 = advance(a1, t->a_skip);
        a2 = advance(a2, t->a_skip);
        a3 = advance(a3, t->a_skip);
        b = advance(b, t->b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    const float *a0 = t->a[0], *a1 = t->a[1], *a2 = t->a[2], *a3 = t->a[3];
    const float *b0 = t->b[0], *b1 = t->b[1], *b2 = t->b[2], *b3 = t->b[3];
    sums s = ZERO_SUMS;
    for (int32_t run = t->k_runs;;) {
        int32_t k = t->k;
        for (; k >= 4; k -= 4) {
            const sums rows = {{vld1q_f32(b0), vld1q_f32(b1), vld1q_f32(b2), vld1q_f32(b3)}};
            const sums b = transposed(&rows);
            const float32x4_t w0 = vld1q_f32(a0), w1 = vld1q_f32(a1), w2 = vld1q_f32(a2), w3 = vld1q_f32(a3);
            FMA_LANE_OF_EACH(s, b.v[0], w0, w1, w2, w3, 0)
            FMA_LANE_OF_EACH(s, b.v[1], w0, w1, w2, w3, 1)
            FMA_LANE_OF_EACH(s, b.v[2], w0, w1, w2, w3, 2)
            FMA_LANE_OF_EACH(s, b.v[3], w0, w1, w2, w3, 3)
            a0 += 4, a1 += 4, a2 += 4, a3 += 4, b0 += 4, b1 += 4, b2 += 4, b3 += 4;
        }
        for (; k > 0; k--) {
            const float column[4] = {*b0++, *b1++, *b2++, *b3++};
            const float32x4_t v = vld1q_f32(column);
            s.v[0] = vmlaq_n_f32(s.v[0], v, *a0++);
            s.v[1] = vmlaq_n_f32(s.v[1], v, *a1++);
            s.v[2] = vmlaq_n_f32(s.v[2], v, *a2++);
            s.v[3] = vmlaq_n_f32(s.v[3], v, *a3++);
        }
        if (--run == 0) {
            break;
        }
        a0 = advance(a0, t->a_skip);
        a1 = advance(a1, t->a_skip);
        a2 = advance(a2, t->a_skip);
        a3 = advance(a3, t->a_skip);
        b0 = advance(b0, t->b_skip);
        b1 = advance(b1, t->b_skip);
        b2 = advance(b2, t->b_skip);
        b3 = advance(b3, t->b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    const float *a = t->a[0], *b = t->b[0];
    const int32_t a_step = t->a_step, b_step = t->b_step;
    sums s = ZERO_SUMS;
    for (int32_t run = t->k_runs;;) {
        for (int32_t k = t->k; k > 0; k--) {
            const float32x4_t v = next_b(&b, b_step), w = next_b(&a, a_step);
            FMA_EACH_LANE(s, v, w)
        }
        if (--run == 0) {
            break;
        }
        a = advance(a, t->a_skip);
        b = advance(b, t->b_skip);
    }
    store_tile(t, &s);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    const float *a = t->a[0], *b0 = t->b[0], *b1 = t->b[1], *b2 = t->b[2], *b3 = t->b[3];
    const int32_t a_step = t->a_step, b_step = t->b_step;
    sums s = ZERO_SUMS;
    for (int32_t run = t->k_runs;;) {
        for (int32_t k = t->k; k > 0; k--) {
            const float32x4_t v = next_b(&a, a_step);
            s.v[0] = vmlaq_n_f32(s.v[0], v, *b0);
            s.v[1] = vmlaq_n_f32(s.v[1], v, *b1);
            s.v[2] = vmlaq_n_f32(s.v[2], v, *b2);
            s.v[3] = vmlaq_n_f32(s.v[3], v, *b3);
            b0 = advance(b0, b_step);
            b1 = advance(b1, b_step);
            b2 = advance(b2, b_step);
            b3 = advance(b3, b_step);
        }
        if (--run == 0) {
            break;
        }
        a = advance(a, t->a_skip);
        b0 = advance(b0, t->b_skip);
        b1 = advance(b1, t->b_skip);
        b2 = advance(b2, t->b_skip);
        b3 = advance(b3, t->b_skip);
    }
    s = transposed(&s);
    store_tile(t, &s);
}
