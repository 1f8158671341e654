/* Vectors of four floats. Multiply-add by a lane is fused in AArch64 and rounds twice in AArch32. */
#ifndef AG_NEON_VEC_H
#define AG_NEON_VEC_H

#include "tiles/helpers.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AG_MOVING_POINTERS 1

#if defined __aarch64__
#define MUL_LANE(v, w, lane) vmulq_laneq_f32(v, w, lane)

/* The horizontal sums of four vectors. */
static inline float32x4_t horizontal_sums(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
}
#else
#define MUL_LANE(v, w, lane) vmulq_lane_f32(v, (lane) < 2 ? vget_low_f32(w) : vget_high_f32(w), (lane) & 1)
#define FMA_LANE(sum, v, w, lane)                                                                            \
    vmlaq_lane_f32(sum, v, (lane) < 2 ? vget_low_f32(w) : vget_high_f32(w), (lane) & 1)

static inline float32x2_t pairwise_sums(float32x4_t a, float32x4_t b) {
    return vpadd_f32(vadd_f32(vget_low_f32(a), vget_high_f32(a)),
                     vadd_f32(vget_low_f32(b), vget_high_f32(b)));
}

static inline float32x4_t horizontal_sums(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d) {
    return vcombine_f32(pairwise_sums(a, b), pairwise_sums(c, d));
}
#endif

typedef float32x4_t vec;
typedef float32x4_t factors; /* one per lane */
typedef int32_t lane_mask;   /* unused: the end of a row is processed float by float */

typedef struct {
    vec val[RUN];
} vecs;

ALWAYS_INLINE vec zero(void) {
    return vdupq_n_f32(0.0f);
}

ALWAYS_INLINE vec splat(float x) {
    return vdupq_n_f32(x);
}

ALWAYS_INLINE vec load(const float *p) {
    return vld1q_f32(p);
}

ALWAYS_INLINE void store(float *p, vec v) {
    vst1q_f32(p, v);
}

ALWAYS_INLINE lane_mask first_lanes(int32_t count) {
    return count;
}

ALWAYS_INLINE vec load_masked(const float *p, lane_mask mask) {
    (void)mask;
#if defined __aarch64__
    vec v;
    __asm__("ldr %s0, %1" : "=w"(v) : "m"(*p));
    return v;
#else
    return vld1q_lane_f32(p, zero(), 0);
#endif
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
    (void)mask;
    vst1q_lane_f32(p, v, 0);
}

/* One instruction moves a run: LD1 and ST1 of four registers, or VLDM and VSTM. They need adjacent registers:
 * one group for runs that are held, one for those that are not. */
#if defined __aarch64__
#define HELD(name, i) register vec name __asm__("v" #i)
#define PASSING(name, i) register vec name __asm__("v2" #i)
#define NEXT "ldr %q0, [%1], #16"
#define PUT "str %q1, [%0], #16"
#define NEXT_BY "ld1 {%0.4s}, [%1], %2"
#define NEXT_LANE "ld1 {%0.s}[0], [%1], %2"
#define LANE(lane, p) "ld1 {%0.s}[" #lane "], [%" #p "], #4\n"
#define LOAD_HELD "ld1 {v0.4s-v3.4s}, [%4], #64"
#define LOAD_RUN "ld1 {v20.4s-v23.4s}, [%4]"
#define LOAD_NEXT "ld1 {v20.4s-v23.4s}, [%4], #64"
#define STORE_NEXT "st1 {v20.4s-v23.4s}, [%0], #64"
#else
#define HELD(name, i) register vec name __asm__("q" #i)
#define PASSING(name, i) register vec name __asm__("q1" #i)
#define NEXT "vld1.32 {%e0, %f0}, [%1]!"
#define PUT "vst1.32 {%e1, %f1}, [%0]!"
#define NEXT_BY "vld1.32 {%e0, %f0}, [%1], %2"
#define NEXT_LANE "vld1.32 {%e0[0]}, [%1], %2"
#define LANE(lane, p) "vld1.32 {" LANE_##lane "}, [%" #p "]!\n"
#define LANE_0 "%e0[0]"
#define LANE_1 "%e0[1]"
#define LANE_2 "%f0[0]"
#define LANE_3 "%f0[1]"
#define LOAD_HELD "vldmia %4!, {d0-d7}"
#define LOAD_RUN "vldmia %4, {d20-d27}"
#define LOAD_NEXT "vldmia %4!, {d20-d27}"
#define STORE_NEXT "vstmia %0!, {d20-d27}"
#endif

#define FOUR(kind)                                                                                           \
    kind(v0, 0);                                                                                             \
    kind(v1, 1);                                                                                             \
    kind(v2, 2);                                                                                             \
    kind(v3, 3)

ALWAYS_INLINE vec next_vec(const float **p) {
    vec v;
    __asm__ volatile(NEXT : "=w"(v), "+r"(*p) : : "memory");
    return v;
}

ALWAYS_INLINE void put_vec(float **p, vec v) {
    __asm__ volatile(PUT : "+r"(*p) : "w"(v) : "memory");
}

ALWAYS_INLINE vecs held_run(int32_t vectors, const float **p) {
    (void)vectors;
    FOUR(HELD);
    __asm__ volatile(LOAD_HELD : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3), "+r"(*p) : : "memory");
    return (vecs){{v0, v1, v2, v3}};
}

ALWAYS_INLINE vecs next_run(int32_t vectors, const float **p) {
    (void)vectors;
    FOUR(PASSING);
    __asm__ volatile(LOAD_NEXT : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3), "+r"(*p) : : "memory");
    return (vecs){{v0, v1, v2, v3}};
}

ALWAYS_INLINE vecs load_run(int32_t vectors, const float *p) {
    (void)vectors;
    FOUR(PASSING);
    __asm__ volatile(LOAD_RUN : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3) : "r"(p) : "memory");
    return (vecs){{v0, v1, v2, v3}};
}

ALWAYS_INLINE void put_run(int32_t vectors, float **p, vecs r) {
    (void)vectors;
    PASSING(v0, 0) = r.val[0];
    PASSING(v1, 1) = r.val[1];
    PASSING(v2, 2) = r.val[2];
    PASSING(v3, 3) = r.val[3];
    __asm__ volatile(STORE_NEXT : "+r"(*p) : "w"(v0), "w"(v1), "w"(v2), "w"(v3) : "memory");
}

/* AG_TILE_N floats; moves on by `step` bytes. */
typedef struct {
    vec val[AG_TILE_N / LANES];
} tile_row;

ALWAYS_INLINE tile_row next_row(const float **p, ptrdiff_t step) {
    tile_row row;
    if (AG_TILE_N == 16) {
        FOUR(PASSING);
        __asm__ volatile("ld1 {v20.4s-v23.4s}, [%4], %5"
                         : "=w"(v0), "=w"(v1), "=w"(v2), "=w"(v3), "+r"(*p)
                         : "r"(step)
                         : "memory");
        const vec v[] = {v0, v1, v2, v3};
        EACH (j, AG_TILE_N / LANES) {
            row.val[j] = v[j];
        }
    } else if (AG_TILE_N == 8) {
        PASSING(v0, 0);
        PASSING(v1, 1);
        __asm__ volatile("vld1.32 {d20-d23}, [%2], %3" : "=w"(v0), "=w"(v1), "+r"(*p) : "r"(step) : "memory");
        const vec v[] = {v0, v1};
        EACH (j, AG_TILE_N / LANES) {
            row.val[j] = v[j % 2];
        }
    } else {
        __asm__ volatile(NEXT_BY : "=w"(row.val[0]), "+r"(*p) : "r"(step) : "memory");
    }
    return row;
}

/* The next float of each of four rows. */
ALWAYS_INLINE vec next_gathered(const float **p) {
    vec v;
    __asm__ volatile(LANE(0, 1) LANE(1, 2) LANE(2, 3) LANE(3, 4)
                     : "=w"(v), "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3])
                     :
                     : "memory");
    return v;
}

ALWAYS_INLINE void transpose(vec *v) {
#if defined __aarch64__
    const vec low0 = vzip1q_f32(v[0], v[2]), high0 = vzip2q_f32(v[0], v[2]);
    const vec low1 = vzip1q_f32(v[1], v[3]), high1 = vzip2q_f32(v[1], v[3]);
    v[0] = vzip1q_f32(low0, low1), v[1] = vzip2q_f32(low0, low1);
    v[2] = vzip1q_f32(high0, high1), v[3] = vzip2q_f32(high0, high1);
#else /* in place, which gcc 12 does not do */
    __asm__("vtrn.32 %q0, %q1\n vtrn.32 %q2, %q3\n vswp %f0, %e2\n vswp %f1, %e3"
            : "+w"(v[0]), "+w"(v[1]), "+w"(v[2]), "+w"(v[3]));
#endif
}

ALWAYS_INLINE factors four_factors(const float *p) {
    return load(p);
}

ALWAYS_INLINE factors next_factors(const float **p) {
    return next_vec(p);
}

ALWAYS_INLINE factors next_factor(const float **p) {
    factors f;
    __asm__ volatile(LANE(0, 1) : "=w"(f), "+r"(*p) : : "memory");
    return f;
}

/* Four factors, or one; *p moves on by `step` bytes. */
ALWAYS_INLINE factors four_factors_by(const float **p, ptrdiff_t step) {
    factors f;
    __asm__ volatile(NEXT_BY : "=w"(f), "+r"(*p) : "r"(step) : "memory");
    return f;
}

ALWAYS_INLINE factors one_factor_by(const float **p, ptrdiff_t step) {
    factors f;
    __asm__ volatile(NEXT_LANE : "=w"(f), "+r"(*p) : "r"(step) : "memory");
    return f;
}

ALWAYS_INLINE factors one_factor(float f) {
    return vdupq_n_f32(f);
}

ALWAYS_INLINE factors scaled(factors f, float alpha) {
    return vmulq_n_f32(f, alpha);
}

ALWAYS_INLINE vec add(vec v, vec w) {
    return vaddq_f32(v, w); /* gcc computes v + w lane by lane in AArch32, where NEON flushes subnormals */
}

ALWAYS_INLINE vec between(vec v, float low, float high) {
    return vminq_f32(vmaxq_f32(v, vdupq_n_f32(low)), vdupq_n_f32(high));
}

ALWAYS_INLINE vec times(vec v, factors f, int32_t i) {
    return i == 0   ? MUL_LANE(v, f, 0)
           : i == 1 ? MUL_LANE(v, f, 1)
           : i == 2 ? MUL_LANE(v, f, 2)
                    : MUL_LANE(v, f, 3);
}

/* gcc 12 copies a lane that two vfmaq_laneq_f32 use to a vector. */
#if defined __aarch64__
#define PLUS(lane) __asm__("fmla %0.4s, %1.4s, %2.s[" #lane "]" : "+w"(sum) : "w"(v), "w"(f))
#else
#define PLUS(lane) sum = FMA_LANE(sum, v, f, lane)
#endif
ALWAYS_INLINE vec plus(vec sum, vec v, factors f, int32_t i) {
    switch (i) { /* a constant after inlining */
    case 0:
        PLUS(0);
        break;
    case 1:
        PLUS(1);
        break;
    case 2:
        PLUS(2);
        break;
    default:
        PLUS(3);
    }
    return sum;
}

ALWAYS_INLINE vec plus_product(vec sum, vec v, vec w) {
    return vfmaq_f32(sum, v, w);
}

ALWAYS_INLINE float total(vec v) {
    return vgetq_lane_f32(horizontal_sums(v, v, v, v), 0);
}

/* For maxima.h. */
typedef uint32x4_t vec_mask;

ALWAYS_INLINE vec_mask larger(vec v, vec best) {
    return vorrq_u32(vcgtq_f32(v, best), vmvnq_u32(vceqq_f32(v, v)));
}

ALWAYS_INLINE vec pick(vec_mask mask, vec v, vec w) {
    return vbslq_f32(mask, v, w);
}

typedef uint32x4_t vec_number;

ALWAYS_INLINE vec_number same_number(int32_t number) {
    return vdupq_n_u32((uint32_t)number);
}

ALWAYS_INLINE vec_number pick_number(vec_mask mask, int32_t number, vec_number which) {
    return vbslq_u32(mask, same_number(number), which);
}

ALWAYS_INLINE vec_number load_numbers(const uint8_t *p, int32_t count) {
    uint32_t bytes = 0;
    memcpy(&bytes, p, count == LANES ? sizeof bytes : 1);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)))));
}

ALWAYS_INLINE void put_numbers(uint8_t *p, vec_number which, int32_t count) {
    const uint16x4_t half = vmovn_u32(which);
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(half, half))), 0);
    memcpy(p, &bytes, count == LANES ? sizeof bytes : 1);
}

/* y[4] = alpha * the totals of four vectors + beta * old[4] */
ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    const vec sum = vmulq_n_f32(horizontal_sums(v[0], v[1], v[2], v[3]), alpha);
    store(y, beta == 0.0f ? sum : vmlaq_n_f32(sum, load(old), beta));
}

#define second_run next_run
#define load_first load_run
#define put_first put_run

#include "pack_b.h"
#include "tiles/to_floats.h"

#endif
