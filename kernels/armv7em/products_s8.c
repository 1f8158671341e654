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
static void unpack(uint32_t *column, uint32_t columns, const int8_t *x, uint32_t k, uint32_t offsets) {
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

/* Copies a window whose rows i0 to i1 are inside x; elements outside are `zero`. */
static const int8_t *window(int8_t *copy, const int8_t *x, int32_t top, int32_t left, int32_t i0, int32_t i1,
                            int32_t zero, const ag_conv2d_shape *s) {
    const int32_t inputs = s->c / s->groups;
    const int32_t j0 = ag_before(-left, s->dilation_w, s->kw),
                  j1 = ag_before(s->w - left, s->dilation_w, s->kw);
    const int32_t run = s->dilation_w == 1 && s->x_w == inputs ? j1 - j0 : 1; /* columns without a gap */
    if (i0 > 0 || j0 > 0 || i1 < s->kh || j1 < s->kw) {
        memset(copy, zero, (size_t)(s->kh * s->kw * inputs));
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

/* The output channels of a group. */
typedef struct channels {
    const int8_t *w;
    const int32_t *bias, *multiplier, *shift;
    int32_t count, k, groups, rest; /* of k: groups of four, and what remains */
    ag_output_s8 output;
} channels;

/* `pairs` pairs of channels, from o, of two pixels of y. */
static void two_pixels(int8_t *y, int32_t ldy, const uint32_t *columns, const channels *c, int32_t o,
                       int32_t pairs) {
    const int32_t back = c->rest > 0 ? 4 - c->rest : 0;
    ag_pixels_s8 p = {c->output,         columns,     c->groups, back, pairs,
                      c->w + o * c->k,   c->k,        y + o,     ldy,  c->bias + o,
                      c->multiplier + o, c->shift + o};
    ag_two_pixels_s8_armv7em(&p);
}

static void one_pixel(int8_t *y, const uint32_t *column, const channels *c) {
    for (int32_t next = 0; next < c->count; next += 4) {
        const int32_t o = next + 4 > c->count ? c->count - 4 : next;
        const int8_t *w = c->w + o * c->k;
        int32_t sums[4];
        memcpy(sums, c->bias + o, sizeof sums);
        ag_products_4x1_s8_armv7em(sums, column, w, c->k, c->groups);
        if (c->rest > 0) {
            ag_products_4x1_s8_armv7em(sums, column + 2 * c->groups, w + c->k - 4, c->k, 1);
        }
        const uint32_t four = ag_outputs(sums, c->multiplier + o, c->shift + o, &c->output);
        memcpy(y + o, &four, sizeof four);
    }
}

/* All pixels of a group's channels. */
static void convolve(const int8_t *x, int8_t *y, int32_t n, int32_t zero, uint32_t *column, const channels *c,
                     const ag_conv2d_shape *s) {
    const uint32_t offsets = ag_offsets(zero);
    int8_t *const copy = (int8_t *)(column + (c->k + 3) / 4 * 4);
    int32_t remaining = n * s->oh * s->ow, filled = 0;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t top = p * s->stride_h - s->pad_top;
            const int32_t i0 = ag_before(-top, s->dilation_h, s->kh);
            const int32_t i1 = ag_before(s->h - top, s->dilation_h, s->kh);
            const int32_t width =
                s->kh == 1 && s->kw == 1 && i0 < i1 ? s->w : 0; /* where no copy is needed */
            int32_t left = -s->pad_left;
            for (int32_t q = 0; q < s->ow; q++, left += s->stride_w) {
                const int8_t *const elements = left >= 0 && left < width
                                                   ? x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w
                                                   : window(copy, x, top, left, i0, i1, zero, s);
                unpack(column + filled, remaining > 1 ? 2 : 1, elements, (uint32_t)c->k, offsets);
                if (remaining == 1) {
                    one_pixel(y, column, c);
                } else if (++filled == 2) {
                    two_pixels(y, s->ldy, column, c, 0, c->count / 2);
                    if (c->count % 2 > 0) {
                        two_pixels(y, s->ldy, column, c, c->count - 2, 1);
                    }
                    y += 2 * s->ldy;
                    remaining -= 2;
                    filled = 0;
                }
            }
        }
    }
}

void ag_conv2d_s8_armv7em(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                          const int32_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                          int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups, k = s->kh * s->kw * inputs;
    AG_SCRATCH_NEEDED((k + 3) / 4 * 20);
    for (int32_t i = 0, o = 0; i < s->c; i += inputs, o += outputs) {
        const channels c = {w + o * k, bias + o, multiplier + o,
                            shift + o, outputs,  k,
                            k / 4,     k % 4,    ag_output_of(y_zero, low, high)};
        convolve(x + i, y + o, n, x_zero, scratch, &c, s);
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
