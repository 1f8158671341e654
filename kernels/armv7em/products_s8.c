/* Convolution and products of 8-bit integers. The windows of two pixels are unpacked to 16 bits in scratch
 * memory, with the zero subtracted, so that only weights are unpacked in the inner loop:
 *
 *            o, two rows of w at a time              of the last, odd pixel:
 *     pixel  [s00 s10] ...                           [s0 s1 s2 s3] ...
 *     pixel  [s01 s11] ...
 *
 * Edge tiles overlap their neighbours; so does the last group of four elements, in which elements that others
 * contain are 0. */
#include "ag_kernels.h"
#include "microkernel_s8.h"

/* A column from k elements; the words of `columns` columns alternate. */
static void unpack(uint32_t *column, int32_t columns, const int8_t *x, int32_t k, uint32_t offsets) {
    for (int32_t i = k / 4; i > 0; i--, x += 4, column += 2 * columns) {
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

/* The elements that window `number` reads of x, the first channel of the group: where they are, or a copy. */
static const int8_t *window(int8_t *copy, const int8_t *x, int32_t number, int32_t zero,
                            const ag_conv2d_shape *s) {
    const int32_t p = number / s->ow, b = p / s->oh, inputs = s->c / s->groups;
    const int32_t top = (p - b * s->oh) * s->stride_h - s->pad_top;
    const int32_t left = (number - p * s->ow) * s->stride_w - s->pad_left;
    const int32_t i0 = ag_before(-top, s->dilation_h, s->kh),
                  i1 = ag_before(s->h - top, s->dilation_h, s->kh);
    const int32_t j0 = ag_before(-left, s->dilation_w, s->kw),
                  j1 = ag_before(s->w - left, s->dilation_w, s->kw);
    const int32_t run = s->dilation_w == 1 && s->x_w == inputs ? j1 - j0 : 1; /* columns without a gap */
    x += (ptrdiff_t)b * s->x_n;
    if (i0 > 0 || j0 > 0 || i1 < s->kh || j1 < s->kw) {
        memset(copy, zero, (size_t)(s->kh * s->kw * inputs));
    } else if (s->kh == 1 && run == s->kw) {
        return x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
    }
    for (int32_t i = i0; i < i1; i++) {
        for (int32_t j = j0; j < j1; j += run) {
            memcpy(copy + (i * s->kw + j) * inputs,
                   x + (ptrdiff_t)(top + i * s->dilation_h) * s->x_h +
                       (ptrdiff_t)(left + j * s->dilation_w) * s->x_w,
                   (size_t)(run * inputs));
        }
    }
    return copy;
}

typedef struct channels {
    const int8_t *w;
    const int32_t *bias, *multiplier, *shift;
    int32_t k, count;
    ag_output_s8 output;
} channels;

/* All channels of one or two pixels of y. */
static inline void compute(int8_t *y, int32_t ldy, const uint32_t *column, int32_t columns,
                           const channels *c) {
    ag_products_s8_fn *const products =
        columns == 2 ? ag_products_2x2_s8_armv7em : ag_products_4x1_s8_armv7em;
    const int32_t k = c->k, rows = 4 / columns;
    for (int32_t next = 0; next < c->count; next += rows) {
        const int32_t o = next + rows > c->count ? c->count - rows : next;
        const int8_t *w = c->w + o * k;
        int32_t sums[4];
        for (int32_t i = 0; i < 4; i++) {
            sums[i] = c->bias[o + i / columns];
        }
        products(sums, column, w, k, k / 4);
        if (k % 4 > 0) {
            products(sums, column + k / 4 * 2 * columns, w + k - 4, k, 1);
        }
        for (int32_t i = 0; i < rows; i++) {
            const int32_t multiplier = c->multiplier[o + i], shift = c->shift[o + i];
            const int32_t fast = ag_is_fast(shift);
            for (int32_t j = 0; j < columns; j++) {
                const int32_t v = sums[i * columns + j];
                y[o + i + j * ldy] = fast ? ag_output_fast(v, multiplier, shift, &c->output)
                                          : ag_output_slow_s8_armv7em(v, multiplier, shift, &c->output);
            }
        }
    }
}

void ag_conv2d_s8_armv7em(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                          const int32_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                          int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups, windows = n * s->oh * s->ow;
    const int32_t k = s->kh * s->kw * inputs, words = (k + 3) / 4 * 4;
    uint32_t *column = scratch;
    AG_SCRATCH_NEEDED(words * 5);
    for (int32_t i = 0; i < windows; i += 2, y += 2 * s->ldy) {
        channels c = {w, bias, multiplier, shift, k, outputs, {y_zero, low, high}};
        const int32_t columns = i + 1 < windows ? 2 : 1;
        for (int32_t g = 0; g < s->groups; g++) {
            for (int32_t j = 0; j < columns; j++) {
                const int8_t *elements = window((int8_t *)(column + words), x + g * inputs, i + j, x_zero, s);
                unpack(column + j, columns, elements, k, ag_offsets(x_zero));
            }
            if (columns == 2) {
                compute(y + g * outputs, s->ldy, column, 2, &c);
            } else {
                compute(y + g * outputs, s->ldy, column, 1, &c);
            }
            c.w += outputs * k;
            c.bias += outputs;
            c.multiplier += outputs;
            c.shift += outputs;
        }
    }
}

/* As a convolution of m pixels with windows of one pixel. */
void ag_dense_s8_armv7em(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                         const int32_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                         int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch) {
    const ag_conv2d_shape pixels = {1, m, k, 1, m, n, 1, 1, 1, 1, 0, 0, 1, 1, 1, m * k, m * k, k, 1, n};
    (void)per_channel;
    ag_conv2d_s8_armv7em(x, w, bias, multiplier, shift, y, 1, x_zero, y_zero, low, high, scratch, &pixels);
}
