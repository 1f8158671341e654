/* Guards of a training step: checks before any state changes, and a count of consecutive rejected steps. */
#ifndef AG_GUARD_H
#define AG_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ag_status.h"

/* Whether all of x[n] are finite: 0 * x is 0 for finite x, otherwise NaN. Where compilers make vectors of
 * loops (ag_loops.h), integers are compared, as their order does not matter: without the sign, infinity is
 * the least of those that are not finite. With Arm's single-precision FPU one VLDM loads eight numbers. */
static inline int ag_all_finite(const float *x, int32_t n) {
#if defined(AG_OPENMP_SIMD)
    int32_t largest = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f800000;
#else
    float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_FMA) && !defined(__ARM_FEATURE_MVE)
    if (n >= 8) {
        n -= 8;
        __asm__("1: vldmia %[x]!, {s0-s7}\n\tsubs %[n], #8\n\t"
                "vfma.f32 %[a], s0, %[zero]\n\tvfma.f32 %[b], s1, %[zero]\n\t"
                "vfma.f32 %[a], s2, %[zero]\n\tvfma.f32 %[b], s3, %[zero]\n\t"
                "vfma.f32 %[a], s4, %[zero]\n\tvfma.f32 %[b], s5, %[zero]\n\t"
                "vfma.f32 %[a], s6, %[zero]\n\tvfma.f32 %[b], s7, %[zero]\n\t"
                "bge 1b"
                : [x] "+&r"(x), [n] "+&r"(n), [a] "+&t"(a), [b] "+&t"(b)
                : [zero] "t"(0.0f)
                : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc", "memory");
        n += 8;
    }
#endif
    for (; n >= 4; n -= 4, x += 4) {
        a += 0.0f * x[0];
        b += 0.0f * x[1];
        c += 0.0f * x[2];
        d += 0.0f * x[3];
    }
    for (; n > 0; n--, x++) {
        a += 0.0f * x[0];
    }
    return (a + b) + (c + d) == 0.0f;
#endif
}

/* Consecutive rejected steps, and the limit at which the last valid checkpoint is to be loaded; 0: never. */
typedef struct ag_rejections {
    uint32_t limit, in_a_row;
} ag_rejections;

/* Counts a step by its status: true when the last valid checkpoint is to be loaded, after which the count
 * restarts. Only rejections that the state may have caused are counted. */
static inline bool ag_rejected_too_often(ag_rejections *r, int status) {
    if (status >= 0) {
        r->in_a_row = 0;
    } else if (status == AG_STATUS_LOSS || status == AG_STATUS_GRADIENTS) {
        r->in_a_row++;
    }
    if (r->limit == 0 || r->in_a_row < r->limit) {
        return false;
    }
    r->in_a_row = 0;
    return true;
}

#endif
