/* Results of 8-bit integers from vectors of four sums, by Helium or NEON: their intrinsics have the same
 * names. */
#ifndef AG_TILES_REQUANTIZED_H
#define AG_TILES_REQUANTIZED_H

#include "tiles/symbols.h"

#include <stdint.h>
#include <string.h>
#if defined __ARM_FEATURE_MVE
#include <arm_mve.h>
#else
#include <arm_neon.h>
#endif

/* How results are stored. `left`: ag_put is called with shifts to the left, too. */
typedef struct ag_output_s8 {
    int32_t zero, low, high, left;
} ag_output_s8;

ALWAYS_INLINE ag_output_s8 ag_output_of(int32_t zero, int32_t low, int32_t high) {
    const ag_output_s8 o = {zero, low, high, 1};
    return o;
}

/* ag_requantized of ag_quantization.h for shifts to the right. Where right < 0, v & right has the sign bit of
 * v. */
ALWAYS_INLINE int32x4_t shifted_right(int32x4_t v, int32x4_t multiplier, int32x4_t right) {
    v = vqrdmulhq_s32(v, multiplier);
    return vrshlq_s32(vaddq_s32(v, vshrq_n_s32(vandq_s32(v, right), 31)), right);
}

/* The same for any shifts. */
ALWAYS_INLINE int32x4_t requantized(int32x4_t v, int32x4_t multiplier, int32x4_t shift) {
    const int32x4_t none = vdupq_n_s32(0);
    return shifted_right(vshlq_s32(v, vmaxq_s32(shift, none)), multiplier, vminq_s32(shift, none));
}

/* Four bytes as integers. */
ALWAYS_INLINE int32x4_t load_four(const int8_t *p) {
#if defined __ARM_FEATURE_MVE
    return vldrbq_s32(p);
#else
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)))));
#endif
}

/* Stores the low bytes. */
ALWAYS_INLINE void store_four(int8_t *y, int32x4_t v) {
#if defined __ARM_FEATURE_MVE
    vstrbq_s32(y, v);
#else
    const int16x4_t half = vmovn_s32(v);
    const int32x2_t bytes = vreinterpret_s32_s8(vmovn_s16(vcombine_s16(half, half)));
    const int32_t four = vget_lane_s32(bytes, 0);
    memcpy(y, &four, sizeof four);
#endif
}

/* Stores the results of `count` sums, a multiple of 4: the same, plus the zero, between the limits. */
ALWAYS_INLINE void ag_put_shifted(int32_t left, int8_t *y, const int32_t *sums, const int32_t *multiplier,
                                  const int8_t *shift, int32_t count, const ag_output_s8 *o) {
    const int32x4_t zero = vdupq_n_s32(o->zero), low = vdupq_n_s32(o->low), high = vdupq_n_s32(o->high);
    for (const int32_t *const end = sums + count; sums < end;
         sums += 4, multiplier += 4, shift += 4, y += 4) {
        const int32x4_t s = vld1q_s32(sums), m = vld1q_s32(multiplier), by = load_four(shift);
        const int32x4_t v = left ? requantized(s, m, by) : shifted_right(s, m, by);
        store_four(y, vminq_s32(vmaxq_s32(vaddq_s32(v, zero), low), high));
    }
}

ALWAYS_INLINE void ag_put(int8_t *y, const int32_t *sums, const int32_t *multiplier, const int8_t *shift,
                          int32_t count, const ag_output_s8 *o) {
    if (o->left) {
        ag_put_shifted(1, y, sums, multiplier, shift, count, o);
    } else {
        ag_put_shifted(0, y, sums, multiplier, shift, count, o);
    }
}

/* The output of channels of so many pixels; where there are 8 or more, it pays to look at the shifts. */
#define AG_OUTPUT_OF(zero, low, high, shift, channels, pixels)                                               \
    output_of(zero, low, high, shift, (pixels) < 8 ? 0 : (channels))
ALWAYS_INLINE ag_output_s8 output_of(int32_t zero, int32_t low, int32_t high, const int8_t *shift,
                                     int32_t channels) {
    ag_output_s8 o = {zero, low, high, channels == 0};
    for (int32_t i = 0; i < channels; i++) {
        o.left |= shift[i] > 0;
    }
    return o;
}

#endif
