/* The micro-kernels and the output that the kernels of 8-bit integers share. */
#ifndef AG_MICROKERNEL_S8_ARMV7EM_H
#define AG_MICROKERNEL_S8_ARMV7EM_H

#include "ag_quantization.h"

#include <arm_acle.h>
#include <string.h>

/* How results are stored. The first three are used together. */
typedef struct ag_output_s8 {
    int32_t twice;         /* 2 (high - zero) */
    uint32_t ranges, lows; /* high - low and low in each byte */
    int32_t zero, low, high;
} ag_output_s8;

static inline ag_output_s8 ag_output_of(int32_t zero, int32_t low, int32_t high) {
    const ag_output_s8 o = {2 * (high - zero),
                            (uint32_t)(high - low) * 0x1010101u,
                            (uint32_t)(low & 0xff) * 0x1010101u,
                            zero,
                            low,
                            high};
    return o;
}

/* Two columns of 16-bit integers times `pairs` >= 1 pairs of rows of w: pixels of y, ldy apart. A column has
 * `groups` groups of four elements, as words of elements 0 and 2, and of 1 and 3; the words of the columns
 * alternate. Where `back` is not 0, the last group of a row starts `back` elements before its multiple of
 * four. The call moves w, bias, multiplier, shift and y. */
typedef struct ag_pixels_s8 {
    ag_output_s8 output;
    const uint32_t *columns;
    int32_t groups, back, pairs;
    const int8_t *w;
    int32_t k;
    int8_t *y;
    int32_t ldy;
    const int32_t *bias, *multiplier;
    const int8_t *shift;
} ag_pixels_s8;

void ag_two_pixels_s8_armv7em(ag_pixels_s8 *p);
uint32_t ag_two_pixels_below_high_s8_armv7em(const ag_pixels_s8 *p, const int32_t *sums);

/* sums[i] += a column times row i of four rows of w, `stride` bytes apart. */
void ag_products_4x1_s8_armv7em(int32_t *sums, const uint32_t *column, const int8_t *w, int32_t stride,
                                int32_t groups);

/* One element of the windows of four channels: where it is, in bytes after the window's start, and the
 * weights of channels 0 and 2, and of 1 and 3. */
typedef struct ag_tap_s8 {
    int32_t offset;
    uint32_t even, odd;
} ag_tap_s8;

/* `pixels` pixels of y, ldy apart, of four channels: the products of taps and of the windows at x, `step`
 * apart, are added to bias. The halfwords of `offsets` are added to each element of a window. A window has 1
 * + more runs of `count` taps, with `skipped` other bytes after each run; where it has several, there is one
 * pixel. The call moves x, y, more and pixels. */
typedef struct ag_pixels_of_four_s8 {
    int32_t bias[4], multiplier[4];
    uint32_t rights; /* as ag_below_high takes them */
    ag_output_s8 output;
    const ag_tap_s8 *taps;
    int32_t count, skipped;
    uint32_t offsets;
    int32_t step;
    const int8_t *x;
    int32_t ldy;
    int8_t *y;
    int32_t more, pixels;
    int8_t shift[4];
} ag_pixels_of_four_s8;

void ag_pixels_of_four_s8_armv7em(ag_pixels_of_four_s8 *p);
uint32_t ag_four_below_high_s8_armv7em(const ag_pixels_of_four_s8 *p, const int32_t *sums);

/* Four elements at any address. */
static inline uint32_t ag_four(const int8_t *x) {
    uint32_t four;
    memcpy(&four, x, sizeof four);
    return four;
}

/* -zero in both halfwords. */
static inline uint32_t ag_offsets(int32_t zero) {
    return (uint32_t)(-zero & 0xffff) * 0x10001u;
}

/* Elements 0 and 2, or 1 and 3, of four as halfwords, plus `offsets`. */
static inline uint32_t ag_even(uint32_t four, uint32_t offsets) {
    return (uint32_t)__sxtab16((int16x2_t)offsets, (int8x4_t)four);
}

static inline uint32_t ag_odd(uint32_t four, uint32_t offsets) {
    uint32_t result;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(offsets), "r"(four));
    return result;
}

/* high - min(ag_requantized(v, multiplier, -1 - right) + zero, high), at most 255, where 0 <= right < 16 is
 * the low byte of `rights`. SMMULR for 2 v is the first rounding; where 2 v saturates, the result is beyond
 * the limits in any case. The second is ceil(t / 2) for the last t below, and high - zero - ceil(t / 2) =
 * floor((2 (high - zero) - t) / 2). */
static inline uint32_t ag_below_high(int32_t v, int32_t multiplier, uint32_t rights, const ag_output_s8 *o) {
    int32_t t;
    uint32_t below;
    __asm__("smmulr %0, %1, %2" : "=r"(t) : "r"(__qadd(v, v)), "r"(multiplier));
    t += t >> 31;
    __asm__("asr %0, %0, %1" : "+r"(t) : "r"(rights)); /* by the low byte */
    __asm__("usat %0, #8, %1, asr #1" : "=r"(below) : "r"(o->twice - t));
    return below;
}

/* The same for any shift. */
uint32_t ag_below_high_s8_armv7em(int32_t v, int32_t multiplier, int32_t shift, const ag_output_s8 *o);

/* Stores the results of four sums: each is high minus what ag_below_high says, and not less than low. */
__attribute__((always_inline)) static inline void ag_put_four(int8_t *y, const int32_t *sums,
                                                              const int32_t *multiplier, const int8_t *shift,
                                                              const ag_output_s8 *o) {
    const uint32_t rights = ~ag_four(shift);
    uint32_t below;
    if ((rights & 0xf0f0f0f0u) == 0) {
        below = ag_below_high(sums[0], multiplier[0], rights, o);
        below |= ag_below_high(sums[1], multiplier[1], rights >> 8, o) << 8;
        below |= ag_below_high(sums[2], multiplier[2], rights >> 16, o) << 16;
        below |= ag_below_high(sums[3], multiplier[3], rights >> 24, o) << 24;
    } else {
        below = ag_below_high_s8_armv7em(sums[0], multiplier[0], shift[0], o);
        below |= ag_below_high_s8_armv7em(sums[1], multiplier[1], shift[1], o) << 8;
        below |= ag_below_high_s8_armv7em(sums[2], multiplier[2], shift[2], o) << 16;
        below |= ag_below_high_s8_armv7em(sums[3], multiplier[3], shift[3], o) << 24;
    }
    __asm__("uqsub8 %0, %1, %0" : "+r"(below) : "r"(o->ranges));
    __asm__("uadd8 %0, %0, %1" : "+r"(below) : "r"(o->lows));
    memcpy(y, &below, sizeof below);
}

#endif
