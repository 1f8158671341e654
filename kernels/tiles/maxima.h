/* The largest element of a window for each channel, and its number: a few vectors of channels at a time,
 * in registers over all elements. */
#ifndef AG_TILES_MAXIMA_H
#define AG_TILES_MAXIMA_H

#include "tiles/vectors.h"

/* A window of rows x columns elements, whose channels are contiguous. The first element has the number
 * `first`, and rows are `row_number` numbers apart. `more`: y and index hold the maxima of the elements
 * before. */
typedef struct {
    const float *x, *bias; /* NULL: none */
    ptrdiff_t row_step, step;
    int32_t rows, columns, first, row_number;
    bool more;
} ag_elements;

enum { MAXIMA = 4 }; /* vectors of channels at a time */

/* Channels from k on: so many vectors, a constant, or `count` lanes of one. Constants too: `biased`, there is
 * a bias; `indexed`, there is an index. */
ALWAYS_INLINE void ag_maxima_of_vectors(const ag_elements *e, bool biased, bool indexed, int32_t vectors,
                                        int32_t count, int32_t k, float *y, uint8_t *index) {
    const bool part = count < LANES;
    const lane_mask lanes = first_lanes(count);
    const float *row = e->x + k;
    vec bias[MAXIMA], best[MAXIMA];
    vec_number which[MAXIMA];
    EACH (q, vectors) {
        const int32_t at = q * LANES;
        bias[q] = biased ? get(part, e->bias + k + at, lanes) : zero();
        best[q] = get(part, e->more ? y + k + at : row + at, lanes);
        if (indexed) {
            which[q] = e->more ? load_numbers(index + k + at, count) : same_number(e->first);
        }
        if (biased && !e->more) {
            best[q] = add(best[q], bias[q]);
        }
    }
    int32_t done = e->more ? 0 : 1; /* elements of the row */
    for (int32_t i = 0, number = e->first; i < e->rows; i++, row += e->row_step, number += e->row_number) {
        for (const float *element = row + done * e->step; done < e->columns; done++, element += e->step) {
            EACH (q, vectors) {
                const vec x = get(part, element + (ptrdiff_t)q * LANES, lanes);
                const vec v = biased ? add(x, bias[q]) : x;
                const vec_mask mask = larger(v, best[q]);
                best[q] = pick(mask, v, best[q]);
                if (indexed) {
                    which[q] = pick_number(mask, number + done, which[q]);
                }
            }
        }
        done = 0;
    }
    EACH (q, vectors) {
        put(part, y + k + (ptrdiff_t)q * LANES, lanes, best[q]);
        if (indexed) {
            put_numbers(index + k + (ptrdiff_t)q * LANES, which[q], count);
        }
    }
}

/* All channels. The first of equal elements is taken, but the last NaN, which is larger than all numbers. */
ALWAYS_INLINE void ag_maxima(const ag_elements *e, bool biased, bool indexed, float *y, uint8_t *index,
                             int32_t channels) {
    int32_t k = 0;
    for (; k + MAXIMA * LANES <= channels; k += MAXIMA * LANES) {
        ag_maxima_of_vectors(e, biased, indexed, MAXIMA, LANES, k, y, index);
    }
    for (; k + LANES <= channels; k += LANES) {
        ag_maxima_of_vectors(e, biased, indexed, 1, LANES, k, y, index);
    }
    for (; k < channels; k += PART) {
        ag_maxima_of_vectors(e, biased, indexed, 1, channels - k < PART ? channels - k : PART, k, y, index);
    }
}

#endif
