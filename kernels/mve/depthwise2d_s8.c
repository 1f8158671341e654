/* Depthwise convolution of 8-bit integers with Helium, eight channels at a time, as vectors of 16 bits. One
 * instruction multiplies the even channels, another one the odd channels. */
#include "tiles/requantized.h"
#include "tiles/taps_s8.h"

typedef int32x4x2_t ag_sums_s8;

typedef struct ag_channels_s8 {
    int32x4x2_t bias, multiplier, shift;
} ag_channels_s8;

ALWAYS_INLINE ag_channels_s8 ag_channels_of(const int32_t *bias, const int32_t *multiplier,
                                            const int8_t *shift) {
    const uint32x4_t even = vidupq_n_u32(0, 2);
    const ag_channels_s8 c = {
        vld2q_s32(bias),
        vld2q_s32(multiplier),
        {{vldrbq_gather_offset_s32(shift, even), vldrbq_gather_offset_s32(shift + 1, even)}}};
    return c;
}

ALWAYS_INLINE void ag_taps(ag_sums_s8 *sums, const int8_t *x, const ag_tap_s8 *taps, int32_t count,
                           int32_t zero) {
    int32x4_t even = sums->val[0], odd = sums->val[1];
    const int8_t *element;
    __asm__ volatile("dls lr, %[count]\n"
                     "1: ldr %[at], [%[taps]], #4\n"
                     "vldrb.s16 q1, [%[taps]], #8\n"
                     "add %[at], %[x]\n"
                     "vldrb.s16 q0, [%[at]]\n"
                     "vsub.i16 q0, q0, %[zero]\n"
                     "vmullb.s16 q2, q0, q1\n"
                     "vadd.i32 %q[even], %q[even], q2\n"
                     "vmullt.s16 q2, q0, q1\n"
                     "vadd.i32 %q[odd], %q[odd], q2\n"
                     "le lr, 1b\n"
                     : [even] "+w"(even), [odd] "+w"(odd), [taps] "+l"(taps), [at] "=&l"(element)
                     : [x] "r"(x), [count] "r"(count), [zero] "r"(zero)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "lr",
                       "memory");
    sums->val[0] = even, sums->val[1] = odd;
}

ALWAYS_INLINE void ag_put_channels(int8_t *y, const ag_sums_s8 *sums, const ag_channels_s8 *c,
                                   const ag_output_s8 *o) {
    int16x8_t v = vdupq_n_s16(0);
    v = vqmovnbq_s32(v, requantized(sums->val[0], c->multiplier.val[0], c->shift.val[0]));
    v = vqmovntq_s32(v, requantized(sums->val[1], c->multiplier.val[1], c->shift.val[1]));
    v = vmaxq_s16(vqaddq_n_s16(v, (int16_t)o->zero), vdupq_n_s16((int16_t)o->low));
    vstrbq_s16(y, vminq_s16(v, vdupq_n_s16((int16_t)o->high)));
}

#include "tiles/depthwise2d_s8.c"
