/* Sums over windows (window_sums.h), all channels of each. */
#ifndef AG_TILES_CHANNEL_SUMS_H
#define AG_TILES_CHANNEL_SUMS_H

#include "tiles/window_sums.h"

/* The channels of a run of outputs, from `out` on; s has all but operands, result and channels. */
static inline void ag_sum_run(const ag_image *image, ag_depthwise_tile *s, const float *in, const float *w,
                              float *out) {
    for (int32_t k = 0; k < image->channels; k = ag_next_channel_tile(k, image->channels)) {
        s->a = in + k;
        s->b = image->w_tap == 0 ? w : w + k;
        s->c = out + k;
        ag_set_depthwise_tile(s, image->channels - k, 1, 0, 0);
        AG_DEPTHWISE_MICROKERNEL(s);
    }
}

/* `count` outputs without valid taps, `next` apart. */
static inline void ag_zero_run(const ag_image *image, float *out, ptrdiff_t next, int32_t count) {
    for (; count > 0; count--, out += next) {
        for (int32_t k = 0; k < image->channels; k++) {
            out[k] = 0.0f;
        }
    }
}

#endif
