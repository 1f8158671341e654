/* One window of a convolution times the filters of many output channels, as products of a matrix and a
 * vector: each row of the window is a run of products. Where its elements are not contiguous in x, runs are
 * packed:
 *
 *     window (rows x columns x channels)      packed[AG_PACKED]
 *     +-----------+
 *     | c c c c c |      run 0: a row, or all rows where no column of the filters is left out
 *     | d d d d d |      run 1, added to the results of run 0
 *     +-----------+ */
#ifndef AG_TILES_WINDOW_PRODUCTS_H
#define AG_TILES_WINDOW_PRODUCTS_H

#include "tiles/helpers.h"
#include "tiles/symbols.h"

#include <stdbool.h>

enum { AG_PACKED = 28 }; /* elements that are packed at a time */

/* The columns of the filters and the channels of a tap; distances in x, and from filter to filter. */
typedef struct {
    int32_t columns, channels;
    ptrdiff_t row_step, tap_step, channel_step, filter;
} ag_window_layout;

/* y[outputs] = the products of `rows` x `columns` taps at x, both >= 1, and the filters whose first such tap
 * is at w. */
static AG_NOINLINE void ag_window_products(float *y, const float *x, int32_t rows, int32_t columns,
                                           const float *w, int32_t outputs, const ag_window_layout *l) {
    const bool contiguous =
        (l->channels == 1 || l->channel_step == 1) && (columns == 1 || l->tap_step == l->channels);
    const bool merged = !contiguous && columns == l->columns;
    const int32_t length = (merged ? rows : 1) * columns * l->channels, lda = (int32_t)l->filter;
    int32_t column = 0, channel = 0;
    float packed[AG_PACKED], beta = 0.0f;
    for (int32_t run = merged ? 1 : rows; run > 0; run--, w += (ptrdiff_t)l->columns * l->channels) {
        if (contiguous) {
            AG_SYMBOL(gemv_f32)(w, lda, x, y, outputs, length, 1.0f, beta, NULL);
            x += l->row_step;
            beta = 1.0f;
            continue;
        }
        for (int32_t k = 0, count; k < length; k += count) {
            count = length - k < AG_PACKED ? length - k : AG_PACKED;
            for (int32_t i = 0; i < count; i++) {
                packed[i] = *x;
                x += l->channel_step;
                if (++channel == l->channels) {
                    channel = 0;
                    x += l->tap_step - l->channels * l->channel_step;
                    if (++column == columns) {
                        column = 0;
                        x += l->row_step - columns * l->tap_step;
                    }
                }
            }
            AG_SYMBOL(gemv_f32)(w + k, lda, packed, y, outputs, count, 1.0f, beta, NULL);
            beta = 1.0f;
        }
    }
}

#endif
