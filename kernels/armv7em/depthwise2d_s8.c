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

typedef ag_pixels_of_four_s8 ag_row_s8;

static inline void ag_row_of(ag_row_s8 *r, const ag_channels_s8 *channels, const ag_output_s8 *output,
                             int32_t zero, int32_t step, int32_t ldy) {
    memcpy(r->bias, channels->bias.of, sizeof r->bias);
    memcpy(r->multiplier, channels->multiplier, sizeof r->multiplier);
    memcpy(r->shift, channels->shift, sizeof r->shift);
    r->rights = ~ag_four(channels->shift);
    r->output = *output;
    r->step = step;
    r->ldy = ldy;
    r->offsets = ag_offsets(zero);
}

static __attribute__((noinline)) void padding_alone(const ag_row_s8 *r, int8_t *y, int32_t n) {
    for (; n > 0; n--, y += r->ldy) {
        ag_put_four(y, r->bias, r->multiplier, r->shift, &r->output);
    }
}

static inline void ag_pixels(ag_row_s8 *r, int8_t *y, const int8_t *x, int32_t n, const ag_tap_s8 *taps,
                             int32_t runs, int32_t count, int32_t next) {
    if (runs == 0) {
        padding_alone(r, y, n);
        return;
    }
    r->x = x;
    r->y = y;
    r->pixels = n;
    r->taps = taps;
    r->count = count;
    r->skipped = (next - count) * (int32_t)sizeof *taps;
    r->more = runs - 1;
    ag_pixels_of_four_s8_armv7em(r);
}

#define AG_PIXELS ag_pixels
#include "tiles/depthwise2d_s8.c"
