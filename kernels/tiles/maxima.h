/* The largest element of a window for each channel, and its number: a vector of channels at a time, in
 * registers over all elements. */
#ifndef AG_TILES_MAXIMA_H
#define AG_TILES_MAXIMA_H

#include "tiles/vectors.h"

/* A window of elements whose channels are contiguous: rows x columns of them, of which the first one has the
 * number `first`, and rows are `row_number` numbers apart. `more`: y and index hold the maxima of the
 * elements before. */
typedef struct {
    const float *x, *bias; /* NULL: none */
    ptrdiff_t row_step, step;
    int32_t rows, columns, first, row_number;
    bool more;
} ag_elements;

/* `count` channels from k on, which are a vector or a part of one; `biased`, a constant: there is a bias. */
ALWAYS_INLINE void ag_maxima_of_lanes(const ag_elements *e, bool biased, int32_t count, int32_t k, float *y,
                                      uint8_t *index) {
    const bool part = count < LANES;
    const lane_mask lanes = first_lanes(count);
    const float *row = e->x + k;
    const vec bias = biased ? get(part, e->bias + k, lanes) : zero();
    vec best = get(part, e->more ? y + k : row, lanes);
    vec_number which = e->more ? load_numbers(index + k, count) : same_number(e->first);
    int32_t done = e->more ? 0 : 1; /* elements of the row */
    if (biased && !e->more) {
        best = add(best, bias);
    }
    for (int32_t i = 0, number = e->first; i < e->rows; i++, row += e->row_step, number += e->row_number) {
        for (const float *element = row + done * e->step; done < e->columns; done++, element += e->step) {
            const vec x = get(part, element, lanes), v = biased ? add(x, bias) : x;
            const vec_mask mask = larger(v, best);
            best = pick(mask, v, best);
            which = pick_number(mask, number + done, which);
        }
        done = 0;
    }
    put(part, y + k, lanes, best);
    put_numbers(index + k, which, count);
}

/* All channels. NaN is larger than all numbers, the first of equals is taken. */
ALWAYS_INLINE void ag_maxima(const ag_elements *e, bool biased, float *y, uint8_t *index, int32_t channels) {
    int32_t k = 0;
    for (; k + LANES <= channels; k += LANES) {
        ag_maxima_of_lanes(e, biased, LANES, k, y, index);
    }
    for (; k < channels; k += PART) {
        ag_maxima_of_lanes(e, biased, channels - k < PART ? channels - k : PART, k, y, index);
    }
}

#endif
