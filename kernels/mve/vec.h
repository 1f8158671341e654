/* Helium: vectors of four floats, the end of a row predicated. */
#ifndef AG_MVE_VEC_H
#define AG_MVE_VEC_H

#include "tiles/helpers.h"

#include <arm_mve.h>
#include <stdint.h>

#define AG_MOVING_POINTERS 1
#define AG_AXPY_ROWS_ASSEMBLY 1 /* a loop whose end is predicated */

typedef float32x4_t vec;

typedef mve_pred16_t lane_mask;

ALWAYS_INLINE vec zero(void) {
    return vdupq_n_f32(0.0f);
}

ALWAYS_INLINE vec splat(float x) {
    return vdupq_n_f32(x);
}

ALWAYS_INLINE vec load(const float *p) {
    return vldrwq_f32(p);
}

ALWAYS_INLINE void store(float *p, vec v) {
    vstrwq_f32(p, v);
}

ALWAYS_INLINE lane_mask first_lanes(int32_t count) {
    return vctp32q((uint32_t)count);
}

ALWAYS_INLINE vec load_masked(const float *p, lane_mask mask) {
    return vldrwq_z_f32(p, mask);
}

ALWAYS_INLINE void store_masked(float *p, vec v, lane_mask mask) {
    vstrwq_p_f32(p, v, mask);
}

/* In assembly, as gcc 12 uses an index and an addition for each address where loops have several pointers. */
ALWAYS_INLINE vec next_vec(const float **p) {
    vec v;
    __asm__ volatile("vldrw.32 %q0, [%1], #16" : "=w"(v), "+r"(*p) : : "memory");
    return v;
}

ALWAYS_INLINE void put_vec(float **p, vec v) {
    __asm__ volatile("vstrw.32 %q1, [%0], #16" : "+r"(*p) : "w"(v) : "memory");
}

ALWAYS_INLINE vec add(vec v, vec w) {
    return vaddq_f32(v, w);
}

/* VMAXNM and VMINNM would drop a NaN, and `lt` is true of one; `gt` is not. */
ALWAYS_INLINE vec between(vec v, float low, float high) {
    v = vdupq_m_n_f32(v, low, vcmpgtq_f32(vdupq_n_f32(low), v));
    return vdupq_m_n_f32(v, high, vcmpgtq_n_f32(v, high));
}

/* For maxima.h. */
typedef mve_pred16_t vec_mask;

ALWAYS_INLINE vec_mask larger(vec v, vec best) {
    return vcmpgtq_f32(v, best) | vcmpneq_f32(v, v);
}

ALWAYS_INLINE vec pick(vec_mask mask, vec v, vec w) {
    return vpselq_f32(v, w, mask);
}

typedef uint32x4_t vec_number;

ALWAYS_INLINE vec_number same_number(int32_t number) {
    return vdupq_n_u32((uint32_t)number);
}

ALWAYS_INLINE vec_number pick_number(vec_mask mask, int32_t number, vec_number which) {
    return vdupq_m_n_u32(which, (uint32_t)number, mask);
}

ALWAYS_INLINE vec_number load_numbers(const uint8_t *p, int32_t count) {
    return vldrbq_z_u32(p, vctp32q((uint32_t)count));
}

ALWAYS_INLINE void put_numbers(uint8_t *p, vec_number which, int32_t count) {
    vstrbq_p_u32(p, which, vctp32q((uint32_t)count));
}

typedef float multiplier; /* in a core register, which VFMA and VMUL take */

ALWAYS_INLINE multiplier multiplier_of(float f) {
    return f;
}

ALWAYS_INLINE vec times_factor(vec v, multiplier f) {
    return vmulq_n_f32(v, f);
}

ALWAYS_INLINE vec plus_scaled(vec sum, vec v, multiplier f) {
    return vfmaq_n_f32(sum, v, f);
}

ALWAYS_INLINE vec plus_product(vec sum, vec v, vec w) {
    return vfmaq_f32(sum, v, w);
}

/* In assembly, as gcc 12 moves lanes through core registers. */
ALWAYS_INLINE float total(vec v) {
    register vec q __asm__("q0") = v;
    float sum, high;
    __asm__("vadd.f32 %0, s0, s1\n vadd.f32 %1, s2, s3\n vadd.f32 %0, %0, %1"
            : "=&t"(sum), "=&t"(high)
            : "w"(q));
    return sum;
}

/* y[4] = alpha * the totals of four vectors + beta * old[4] */
ALWAYS_INLINE void put_totals(float *y, const vec *v, float alpha, float beta, const float *old) {
    register vec q0 __asm__("q0") = v[0], q1 __asm__("q1") = v[1], q2 __asm__("q2") = v[2],
                    q3 __asm__("q3") = v[3];
    __asm__("vadd.f32 s0, s0, s1\n vadd.f32 s2, s2, s3\n vadd.f32 s4, s4, s5\n vadd.f32 s6, s6, s7\n"
            "vadd.f32 s8, s8, s9\n vadd.f32 s10, s10, s11\n vadd.f32 s12, s12, s13\n vadd.f32 s14, s14, s15\n"
            "vadd.f32 s0, s0, s2\n vadd.f32 s1, s4, s6\n vadd.f32 s2, s8, s10\n vadd.f32 s3, s12, s14\n"
            : "+w"(q0), "+w"(q1), "+w"(q2), "+w"(q3));
    q0 = vmulq_n_f32(q0, alpha);
    vstrwq_f32(y, beta == 0.0f ? q0 : vfmaq_n_f32(q0, vldrwq_f32(old), beta));
}

#include "tiles/runs.h"
#include "tiles/factors.h"
#include "tiles/packing.h"
#include "tiles/to_floats.h"

#endif
