/* Depthwise convolution of 8-bit integers, AG_CHANNELS channels at a time. Their weights are unpacked in
 * scratch memory first, each next to the offset of the element that it is multiplied with:
 *
 *     taps  offset, weights | offset, weights | ...          kh * kw of them
 *
 * A window that has all its columns inside x is one run of taps, any other a run for each row. The last
 * channels overlap the ones before. In place, y is stored over x: rows of results wait in scratch memory
 * until no later row reads the elements that they overwrite. A backend's file defines the following, and
 * includes this one.
 *
 *     AG_CHANNELS       channels that are computed together
 *     ag_output_s8      how results are stored, by ag_output_of(zero, low, high)
 *     ag_tap_s8         a tap: `offset`, and weights, which ag_weights stores
 *     ag_sums_s8        sums of the channels
 *     ag_channels_s8    sums that are `bias`, and scales, by ag_channels_of(bias, multiplier, shift)
 *     ag_taps           adds the products of taps to sums
 *     ag_put_channels   stores the results of sums
 *
 * or, in place of the last two, AG_PIXELS(row, y, x, n, taps, runs, count, next) with an ag_row_s8 that
 * ag_row_of sets: n pixels of a row of y. Their windows at x have `runs` runs of `count` taps; the first taps
 * of two runs are `next` apart. A call with several runs has one pixel. */
#include "ag_kernels.h"
#include "tiles/symbols.h"
#include "tiles/tap_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static void unpack(ag_tap_s8 *tap, const int8_t *w, const ag_conv2d_shape *s) {
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++, tap++, w += s->c) {
            tap->offset = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w;
            ag_weights(tap, w);
        }
    }
}

/* AG_CHANNELS channels of one image. With AG_PIXELS, pixels next to each other whose windows have all columns
 * inside x are computed together. */
ALWAYS_INLINE void compute(const int8_t *x, const ag_tap_s8 *taps, const ag_channels_s8 *channels, int8_t *y,
                           int32_t zero, const ag_output_s8 *output, const ag_conv2d_shape *s) {
    const int32_t right = s->w - (s->kw - 1) * s->dilation_w; /* windows that start there end outside x */
    const int32_t step = s->stride_w * s->x_w;
#ifdef AG_PIXELS
    ag_row_s8 r;
    ag_row_of(&r, channels, output, zero, step, s->ldy);
#endif
    for (int32_t p = 0; p < s->oh; p++) {
        const int32_t top = p * s->stride_h - s->pad_top;
        const int32_t i0 = ag_before(-top, s->dilation_h, s->kh);
        const int32_t i1 = ag_before(s->h - top, s->dilation_h, s->kh), rows = i1 > i0 ? i1 - i0 : 0;
        const ag_tap_s8 *row = taps + (ptrdiff_t)i0 * s->kw;
        int32_t left = -s->pad_left, n = 1;
        uintptr_t start = (uintptr_t)x + (uintptr_t)(ptrdiff_t)(top * s->x_h + left * s->x_w);
        for (int32_t q = s->ow; q > 0; q -= n) {
            const int8_t *const window = (const int8_t *)start;
            const bool whole = left >= 0 && left < right;
            const int32_t j0 = whole ? 0 : ag_before(-left, s->dilation_w, s->kw);
            const int32_t j1 = whole ? s->kw : ag_before(s->w - left, s->dilation_w, s->kw);
#ifdef AG_PIXELS
            n = !whole ? 1 : s->stride_w == 1 ? right - left : (right - left - 1) / s->stride_w + 1;
            n = n < q ? n : q;
            if (whole) {
                AG_PIXELS(&r, y, window, n, row, rows > 0, rows * s->kw, 0);
            } else {
                AG_PIXELS(&r, y, window, 1, row + j0, j0 < j1 ? rows : 0, j1 - j0, s->kw);
            }
#else
            ag_sums_s8 sums = channels->bias;
            if (whole && rows > 0) {
                ag_taps(&sums, window, row, rows * s->kw, zero);
            }
            for (int32_t i = 0; !whole && i < rows && j0 < j1; i++) {
                ag_taps(&sums, window, row + (ptrdiff_t)i * s->kw + j0, j1 - j0, zero);
            }
            ag_put_channels(y, &sums, channels, output);
#endif
            left += n * s->stride_w;
            start += (uintptr_t)(ptrdiff_t)(n * step);
            y += (ptrdiff_t)n * s->ldy;
        }
    }
}

void AG_SYMBOL(depthwise2d_s8)(const int8_t *x, const int8_t *w, const int32_t *bias,
                               const int32_t *multiplier, const int8_t *shift, int8_t *y, int32_t n,
                               int32_t x_zero, int32_t y_zero, int32_t low, int32_t high, void *scratch,
                               const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const ag_output_s8 output = ag_output_of(y_zero, low, high);
    ag_tap_s8 *taps = scratch;
    AG_SCRATCH_NEEDED(s->kh * s->kw * (int32_t)sizeof *taps);
    for (int32_t next = 0; next < s->c; next += AG_CHANNELS) {
        const int32_t c = next + AG_CHANNELS > s->c ? s->c - AG_CHANNELS : next;
        const ag_channels_s8 channels = ag_channels_of(bias + c, multiplier + c, shift + c);
        unpack(taps, w + c, s);
        for (int32_t b = 0; b < n; b++) {
            compute(x + (ptrdiff_t)b * s->x_n + c, taps, &channels,
                    y + (ptrdiff_t)b * s->oh * s->ow * s->ldy + c, x_zero, &output, s);
        }
    }
}

/* AG_CHANNELS channels of one image in place. The first `skipped` of the channels are results already. A row
 * of results is stored `late` rows later, when no row reads the elements that it overwrites any more. */
static void compute_in_place(const int8_t *x, const ag_tap_s8 *taps, const ag_channels_s8 *channels,
                             int8_t *y, int32_t zero, const ag_output_s8 *output, const ag_conv2d_shape *s,
                             int8_t *rows, int32_t late, int32_t skipped) {
    const int32_t size = s->ow * AG_CHANNELS;
    ag_conv2d_shape one = *s; /* only row p */
    one.oh = 1;
    one.ldy = AG_CHANNELS;
    for (int32_t p = 0; p < s->oh + late; p++, one.pad_top -= s->stride_h) {
        if (p < s->oh) {
            compute(x, taps, channels, rows + (ptrdiff_t)(p % (late + 1)) * size, zero, output, &one);
        }
        if (p >= late) {
            const int8_t *row = rows + (ptrdiff_t)((p + 1) % (late + 1)) * size;
            for (int32_t q = s->ow; q > 0; q--, row += AG_CHANNELS, y += s->ldy) {
                if (skipped == 0) {
                    memcpy(y, row, AG_CHANNELS);
                    continue;
                }
                for (int32_t k = skipped; k < AG_CHANNELS; k++) {
                    y[k] = row[k];
                }
            }
        }
    }
}

void AG_SYMBOL(depthwise2d_in_place_s8)(const int8_t *x, const int8_t *w, const int32_t *bias,
                                        const int32_t *multiplier, const int8_t *shift, int8_t *y, int32_t n,
                                        int32_t x_zero, int32_t y_zero, int32_t low, int32_t high,
                                        void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const ag_output_s8 output = ag_output_of(y_zero, low, high);
    const int32_t late = s->pad_top;
    ag_tap_s8 *taps = scratch;
    int8_t *rows = (int8_t *)(taps + (ptrdiff_t)s->kh * s->kw);
    AG_SCRATCH_NEEDED(s->kh * s->kw * (int32_t)sizeof *taps + (late + 1) * s->ow * AG_CHANNELS);
    for (int32_t next = 0; next < s->c; next += AG_CHANNELS) {
        const int32_t c = next + AG_CHANNELS > s->c ? s->c - AG_CHANNELS : next;
        const ag_channels_s8 channels = ag_channels_of(bias + c, multiplier + c, shift + c);
        unpack(taps, w + c, s);
        for (int32_t b = 0; b < n; b++) {
            compute_in_place(x + (ptrdiff_t)b * s->x_n + c, taps, &channels,
                             y + (ptrdiff_t)b * s->oh * s->ow * s->ldy + c, x_zero, &output, s, rows, late,
                             next - c);
        }
    }
}
