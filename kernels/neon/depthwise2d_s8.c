/* Depthwise convolution of 8-bit integers with NEON, eight channels at a time. */
#include "tiles/requantized.h"
#include "tiles/taps_s8.h"

typedef int32x4x2_t ag_sums_s8;

typedef struct ag_channels_s8 {
    int32x4x2_t bias, multiplier, shift;
} ag_channels_s8;

ALWAYS_INLINE int32x4x2_t eight(const int32_t *p) {
    const int32x4x2_t v = {{vld1q_s32(p), vld1q_s32(p + 4)}};
    return v;
}

ALWAYS_INLINE ag_channels_s8 ag_channels_of(const int32_t *bias, const int32_t *multiplier,
                                            const int8_t *shift) {
    const int16x8_t shifts = vmovl_s8(vld1_s8(shift));
    const ag_channels_s8 c = {eight(bias),
                              eight(multiplier),
                              {{vmovl_s16(vget_low_s16(shifts)), vmovl_s16(vget_high_s16(shifts))}}};
    return c;
}

ALWAYS_INLINE void ag_taps(ag_sums_s8 *sums, const int8_t *x, const ag_tap_s8 *taps, int32_t count,
                           int32_t zero) {
    const int8x8_t zeros = vdup_n_s8((int8_t)zero);
    int32x4_t low = sums->val[0], high = sums->val[1];
    for (const ag_tap_s8 *const end = taps + count; taps < end; taps++) {
        const int16x8_t v = vsubl_s8(vld1_s8(x + taps->offset), zeros), w = vmovl_s8(vld1_s8(taps->w));
        low = vmlal_s16(low, vget_low_s16(v), vget_low_s16(w));
        high = vmlal_s16(high, vget_high_s16(v), vget_high_s16(w));
    }
    sums->val[0] = low, sums->val[1] = high;
}

ALWAYS_INLINE void ag_put_channels(int8_t *y, const ag_sums_s8 *sums, const ag_channels_s8 *c,
                                   const ag_output_s8 *o) {
    const int16x4_t low = vqmovn_s32(requantized(sums->val[0], c->multiplier.val[0], c->shift.val[0]));
    const int16x4_t high = vqmovn_s32(requantized(sums->val[1], c->multiplier.val[1], c->shift.val[1]));
    const int8x8_t v = vqmovn_s16(vqaddq_s16(vcombine_s16(low, high), vdupq_n_s16((int16_t)o->zero)));
    vst1_s8(y, vmin_s8(vmax_s8(v, vdup_n_s8((int8_t)o->low)), vdup_n_s8((int8_t)o->high)));
}

#include "tiles/depthwise2d_s8.c"
