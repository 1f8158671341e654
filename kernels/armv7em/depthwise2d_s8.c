/* Depthwise convolution of 8-bit integers, four channels at a time, whose weights are unpacked to 16 bits. */
#include "microkernel_s8.h"

enum { AG_CHANNELS = 4 };

typedef struct ag_sums_s8 {
    int32_t of[AG_CHANNELS];
} ag_sums_s8;

typedef struct ag_channels_s8 {
    ag_sums_s8 bias;
    int32_t multiplier[AG_CHANNELS];
    int8_t shift[AG_CHANNELS];
} ag_channels_s8;

static inline ag_channels_s8 ag_channels_of(const int32_t *bias, const int32_t *multiplier,
                                            const int8_t *shift) {
    ag_channels_s8 c;
    memcpy(&c.bias, bias, sizeof c.bias);
    memcpy(c.multiplier, multiplier, sizeof c.multiplier);
    memcpy(c.shift, shift, sizeof c.shift);
    return c;
}

static inline void ag_weights(ag_tap_s8 *tap, const int8_t *w) {
    tap->even = ag_even(ag_four(w), 0);
    tap->odd = ag_odd(ag_four(w), 0);
}

static inline void ag_taps(ag_sums_s8 *sums, const int8_t *x, const ag_tap_s8 *taps, int32_t count,
                           int32_t zero) {
    ag_taps_s8_armv7em(sums->of, x, taps, count, ag_offsets(zero));
}

static inline void ag_put_channels(int8_t *y, const ag_sums_s8 *sums, const ag_channels_s8 *c,
                                   const ag_output_s8 *o) {
    ag_put_four(y, sums->of, c->multiplier, c->shift, o);
}

#include "tiles/depthwise2d_s8.c"
