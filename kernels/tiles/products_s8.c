/* Convolution and products of 8-bit integers: windows times rows of w. The last four rows overlap the ones
 * before.
 *
 *     window   k elements: where they are in x, or copied, padding as x_zero
 *     rows     o * k weights        y  [y0 y1 ... ] ... [y(o-4) ... y(o-1)]
 *
 * A backend's file defines the following, and includes this one.
 *
 *     AG_WINDOWS        1; or 2: windows are unpacked, and two of them processed together
 *     AG_ROWS           rows of a call, a multiple of 4
 *     ag_output_s8      how results are stored, by ag_output_of(zero, low, high)
 *     ag_dots           sums of the products of a window and up to AG_ROWS rows
 *     ag_put            stores the results of sums
 *     ag_copy           copies at least one byte
 *
 * With AG_WINDOWS 1 products have x as factor, not x - x_zero: the products of a window of padding are
 * subtracted from bias, once in a call. */
#include "ag_kernels.h"
#include "ag_quantization.h"
#include "tiles/products_s8.h"
#include "tiles/symbols.h"
#include "tiles/tap_ranges.h"

#include <string.h>

/* Copies a window whose rows i0 to i1 are inside x; elements outside are `zero`. */
static const int8_t *window(int8_t *copy, const int8_t *x, int32_t top, int32_t left, int32_t i0, int32_t i1,
                            int32_t zero, const ag_conv2d_shape *s) {
    const int32_t inputs = s->c / s->groups;
    const int32_t j0 = ag_before(-left, s->dilation_w, s->kw),
                  j1 = ag_before(s->w - left, s->dilation_w, s->kw);
    const int32_t run = s->dilation_w == 1 && s->x_w == inputs ? j1 - j0 : 1; /* columns without a gap */
    if (i0 > 0 || j0 > 0 || i1 < s->kh || j1 < s->kw) {
        memset(copy, zero, (size_t)s->kh * (size_t)s->kw * (size_t)inputs);
    }
    const int32_t bytes = run * inputs, step = run * s->dilation_w * s->x_w;
    const int32_t width = s->kw * inputs, height = s->dilation_h * s->x_h;
    int8_t *to = copy + (ptrdiff_t)i0 * width + (ptrdiff_t)j0 * inputs;
    const int8_t *from =
        x + (ptrdiff_t)(top + i0 * s->dilation_h) * s->x_h + (ptrdiff_t)(left + j0 * s->dilation_w) * s->x_w;
    for (int32_t i = i1 - i0; i > 0 && j0 < j1; i--, to += width, from += height) {
        ag_copy(to, from, (size_t)bytes);
        for (int32_t j = 1; j * run < j1 - j0; j++) {
            ag_copy(to + (ptrdiff_t)j * bytes, from + (ptrdiff_t)j * step, (size_t)bytes);
        }
    }
    return copy;
}

/* How many rows the call for those from `o` has, a multiple of 4; it may move o back. */
static inline int32_t rows_from(int32_t *o, int32_t count) {
    const int32_t rows = (count - *o < AG_ROWS ? count - *o : AG_ROWS) / 4 * 4;
    *o = rows > 0 ? *o : count - 4;
    return rows > 0 ? rows : 4;
}

static void one_window(int8_t *y, const void *elements, const ag_rows_s8 *c) {
    for (int32_t o = 0, n; o < c->count; o += n) {
        int32_t sums[AG_ROWS];
        n = rows_from(&o, c->count);
        ag_dots(sums, c->bias + o, elements, c->w + (ptrdiff_t)o * c->k, c->k, n);
        ag_put(y + o, sums, c->multiplier + o, c->shift + o, n, c->output);
    }
}

/* A mask of the results of one image, and how these are limited. */
typedef struct ag_within_s8 {
    uint8_t *mask;
    int32_t zero, low, high;
} ag_within_s8;

/* The same, and bits `at` and following of the mask. Results are limited one by one. */
static void one_window_within(int8_t *y, const void *elements, const ag_rows_s8 *c, const ag_within_s8 *m,
                              ptrdiff_t at) {
    for (int32_t o = 0, n; o < c->count; o += n) {
        int32_t sums[AG_ROWS];
        n = rows_from(&o, c->count);
        ag_dots(sums, c->bias + o, elements, c->w + (ptrdiff_t)o * c->k, c->k, n);
        for (int32_t i = 0; i < n; i++) {
            const int32_t v = ag_requantized(sums[i], c->multiplier[o + i], c->shift[o + i]) + m->zero;
            y[o + i] = (int8_t)ag_limited(v, m->low, m->high);
            ag_mark_within(m->mask, at + o + i, v, m->low, m->high);
        }
    }
}

/* All pixels of a group's channels. m: NULL where no mask is stored. */
ALWAYS_INLINE void convolve(const int8_t *x, int8_t *y, int32_t n, int32_t zero, int8_t *copy,
                            const ag_rows_s8 *c, ag_within_s8 *m, const ag_conv2d_shape *s) {
#if AG_WINDOWS == 2
    uint32_t *const columns = (uint32_t *)(void *)(copy + (ptrdiff_t)(c->k + 3) / 4 * 4);
    int32_t remaining = n * s->oh * s->ow, filled = 0;
#endif
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        ptrdiff_t at = 0;
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
                if (m) {
#if AG_WINDOWS == 2
                    ag_unpack(columns, 1, elements, c->k, zero);
                    one_window_within(y, columns, c, m, at);
#else
                    one_window_within(y, elements, c, m, at);
#endif
                    y += s->ldy;
                    at += s->o;
                    continue;
                }
#if AG_WINDOWS == 2
                ag_unpack(columns + filled, remaining > 1 ? 2 : 1, elements, c->k, zero);
                if (remaining == 1) {
                    one_window(y, columns, c);
                } else if (++filled == 2) {
                    ag_two_windows(y, s->ldy, columns, c);
                    y += 2 * s->ldy;
                    remaining -= 2;
                    filled = 0;
                }
#else
                one_window(y, elements, c);
                y += s->ldy;
#endif
            }
        }
        if (m) {
            m->mask += (at + 7) / 8;
        }
    }
}

#if AG_WINDOWS == 1
/* bias for products of x, after the window in scratch memory. */
static const int32_t *bias_of(const ag_rows_s8 *c, int8_t *copy, int32_t zero) {
    int32_t *const result = (int32_t *)(void *)(copy + (ptrdiff_t)(c->k + 3) / 4 * 4);
    memset(copy, zero, (size_t)c->k);
    for (int32_t o = 0, rows; o < c->count; o += rows) {
        rows = rows_from(&o, c->count);
        ag_dots(result + o, c->bias + o, copy, c->w + (ptrdiff_t)o * c->k, c->k, rows);
        for (int32_t i = o; i < o + rows; i++) {
            result[i] = (int32_t)(2u * (uint32_t)c->bias[i] - (uint32_t)result[i]);
        }
    }
    return result;
}
#endif

void AG_SYMBOL(conv2d_s8)(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                          const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                          int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t inputs = s->c / s->groups, outputs = s->o / s->groups, k = s->kh * s->kw * inputs;
    const ag_output_s8 output = ag_output_of(y_zero, low, high);
    AG_SCRATCH_NEEDED(AG_WINDOWS == 2 ? (k + 3) / 4 * 20 : (k + 3) / 4 * 4 + 4 * outputs);
    for (int32_t i = 0, o = 0; i < s->c; i += inputs, o += outputs) {
        ag_rows_s8 c = {w + (ptrdiff_t)o * k, bias + o, multiplier + o, shift + o, outputs, k, &output};
#if AG_WINDOWS == 1
        c.bias = bias_of(&c, scratch, x_zero);
#endif
        convolve(x + i, y + o, n, x_zero, scratch, &c, NULL, s);
    }
}

/* Of one group. */
void AG_SYMBOL(conv2d_within_s8)(const int8_t *x, const int8_t *w, const int32_t *bias,
                                 const int32_t *multiplier, const int8_t *shift, int8_t *y, uint8_t *within,
                                 int32_t n, int32_t x_zero, int32_t y_zero, int32_t low, int32_t high,
                                 void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t k = s->kh * s->kw * s->c;
    ag_within_s8 m = {within, y_zero, low, high};
    ag_rows_s8 c = {w, bias, multiplier, shift, s->o, k, NULL};
    AG_SCRATCH_NEEDED(AG_WINDOWS == 2 ? (k + 3) / 4 * 12 : (k + 3) / 4 * 4 + 4 * s->o);
#if AG_WINDOWS == 1
    c.bias = bias_of(&c, scratch, x_zero);
#endif
    convolve(x, y, n, x_zero, scratch, &c, &m, s);
}

/* As a convolution of m pixels with windows of one pixel. */
void AG_SYMBOL(dense_s8)(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                         const int8_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                         int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch) {
    const ag_conv2d_shape pixels = {1, m, k, 1, m, n, 1, 1, 1, 1, 0, 0, 1, 1, 1, m * k, m * k, k, 1, n};
    (void)per_channel;
    AG_SYMBOL(conv2d_s8)
    (x, w, bias, multiplier, shift, y, 1, x_zero, y_zero, low, high, scratch, &pixels);
}

/* As a convolution of m images of one pixel. */
void AG_SYMBOL(dense_within_s8)(const int8_t *x, const int8_t *w, const int32_t *bias,
                                const int32_t *multiplier, const int8_t *shift, int8_t *y, uint8_t *within,
                                int32_t m, int32_t n, int32_t k, int32_t x_zero, int32_t y_zero, int32_t low,
                                int32_t high, int32_t per_channel, void *scratch) {
    const ag_conv2d_shape pixel = {1, 1, k, 1, 1, n, 1, 1, 1, 1, 0, 0, 1, 1, 1, k, k, k, 1, n};
    (void)per_channel;
    AG_SYMBOL(conv2d_within_s8)
    (x, w, bias, multiplier, shift, y, within, m, x_zero, y_zero, low, high, scratch, &pixel);
}
