/* Products of 8-bit integers. The windows of two pixels are unpacked to 16 bits in scratch memory, with the
 * zero subtracted, so that only weights are unpacked in the inner loop:
 *
 *            o, two rows of w at a time              of the last, odd pixel:
 *     pixel  [s00 s10] ...                           [s0 s1 s2 s3] ...
 *     pixel  [s01 s11] ...
 *
 * Edge tiles overlap their neighbours; so does the last group of four elements, in which elements that others
 * contain are 0. */
#include "microkernel_s8.h"
#include "tiles/products_s8.h"

#define AG_WINDOWS 2
#define ag_copy memcpy
enum { AG_ROWS = 4 };

/* A column from k elements; the words of `columns` columns alternate. */
static void ag_unpack(uint32_t *column, uint32_t columns, const int8_t *x, int32_t elements, int32_t zero) {
    const uint32_t k = (uint32_t)elements, offsets = ag_offsets(zero);
    for (const int8_t *const end = x + k / 4 * 4; x < end; x += 4, column += 2 * columns) {
        const uint32_t four = ag_four(x);
        column[0] = ag_even(four, offsets);
        column[columns] = ag_odd(four, offsets);
    }
    if (k % 4 > 0) {
        const uint32_t four = ag_four(x + k % 4 - 4);
        column[0] = ag_even(four, offsets) & (k % 4 > 1 ? 0xffff0000u : 0u);
        column[columns] = ag_odd(four, offsets) & (k % 4 > 2 ? 0xffffffffu : 0xffff0000u);
    }
}

/* `pairs` pairs of channels, from o, of two pixels of y. */
static void pairs_of_two(int8_t *y, int32_t ldy, const uint32_t *columns, const ag_rows_s8 *c, int32_t o,
                         int32_t pairs) {
    ag_pixels_s8 p = {*c->output, columns, c->k / 4,    -c->k & 3,         pairs,       c->w + o * c->k, c->k,
                      y + o,      ldy,     c->bias + o, c->multiplier + o, c->shift + o};
    ag_two_pixels_s8_armv7em(&p);
}

static void ag_two_windows(int8_t *y, int32_t ldy, const uint32_t *columns, const ag_rows_s8 *c) {
    pairs_of_two(y, ldy, columns, c, 0, c->count / 2);
    if (c->count % 2 > 0) {
        pairs_of_two(y, ldy, columns, c, c->count - 2, 1);
    }
}

static inline void ag_dots(int32_t *sums, const int32_t *bias, const void *column, const int8_t *w, int32_t k,
                           int32_t rows) {
    const uint32_t *words = column;
    (void)rows;
    memcpy(sums, bias, 4 * sizeof *sums);
    ag_products_4x1_s8_armv7em(sums, words, w, k, k / 4);
    if (k % 4 > 0) {
        ag_products_4x1_s8_armv7em(sums, words + k / 4 * 2, w + k - 4, k, 1);
    }
}

static inline void ag_put(int8_t *y, const int32_t *sums, const int32_t *multiplier, const int8_t *shift,
                          int32_t rows, const ag_output_s8 *o) {
    (void)rows;
    ag_put_four(y, sums, multiplier, shift, o);
}

#include "tiles/products_s8.c"
