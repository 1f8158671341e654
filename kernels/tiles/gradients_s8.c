/* Gradients of convolutions with one quantised operand: blocks of it become floats in scratch memory, for the
 * backend's kernels that take floats.
 *
 *     dx:  the weights of AG_BLOCK_COLUMNS input channels, or AG_BLOCK_CHANNELS of a depthwise convolution,
 *          which give these channels of dx
 *     dw:  the rows of x below AG_BLOCK_ROWS rows of dy, which add to all of dw
 *
 * With AG_NARROW_TILES, narrow tiles compute fewer channels of dx than a tile has columns. */
#include "ag_kernels.h"
#include "tiles/conv2d_group.h"
#include "tiles/vectors.h"

enum { AG_BLOCK_CHANNELS = 8, AG_BLOCK_ROWS = 4 };

ag_conv2d_dx_group_fn AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32_small));

/* `rows` rows of integers less zero, whose elements are `step` apart, become rows of floats without gaps. */
static AG_NOINLINE void ag_rows_to_float(const int8_t *q, ptrdiff_t row, ptrdiff_t step, int32_t rows,
                                         int32_t columns, int32_t zero, float *x) {
    const int32_t runs = step == 1 && row == columns ? 1 : rows, run = rows / runs * columns;
    for (int32_t i = 0; i < runs; i++, q += row, x += run) {
        if (step == 1) {
            ag_to_floats(q, run, zero, x);
            continue;
        }
        for (int32_t j = 0; j < run; j++) {
            x[j] = (float)(q[j * step] - zero);
        }
    }
}

/* The first of the channels of a block from k on: the last block begins earlier, so that all are of one size.
 */
static inline int32_t ag_block_begin(int32_t k, int32_t channels, int32_t all) {
    return k < all - channels ? k : all - channels;
}

void AG_SYMBOL(conv2d_dx_f32_s8)(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                 const ag_conv2d_shape *shape) {
    ag_conv2d_group g = ag_conv2d_group_of(shape);
    const int32_t inputs = g.channels, rows = g.outputs * shape->kh * shape->kw;
    g.channels = ag_min(inputs, AG_BLOCK_COLUMNS);
    g.filter = (ptrdiff_t)shape->kh * shape->kw * g.channels;
    ag_conv2d_dx_group_fn *const group = AG_NARROW_TILES && g.channels < AG_TILE_N
                                             ? AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32_small))
                                             : AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32));
    AG_SCRATCH_NEEDED(4 * rows * AG_BLOCK_COLUMNS);
    for (int32_t i = 0; i < shape->groups; i++, dy += g.outputs, dx += (ptrdiff_t)inputs * shape->x_c) {
        for (int32_t k = 0; k < inputs; k += g.channels) {
            const int32_t first = ag_block_begin(k, g.channels, inputs);
            ag_rows_to_float(w + first, inputs, 1, rows, g.channels, 0, scratch);
            group(dy, scratch, dx + (ptrdiff_t)first * shape->x_c, n, &g);
        }
        w += (ptrdiff_t)rows * inputs;
    }
}

void AG_SYMBOL(depthwise2d_dx_f32_s8)(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                      const ag_conv2d_shape *shape) {
    const int32_t channels = shape->c < AG_BLOCK_CHANNELS ? shape->c : AG_BLOCK_CHANNELS;
    const int32_t taps = shape->kh * shape->kw;
    ag_conv2d_shape s = *shape;
    s.c = s.o = s.groups = channels;
    AG_SCRATCH_NEEDED(4 * taps * AG_BLOCK_CHANNELS);
    for (int32_t k = 0; k < shape->c; k += channels) {
        const int32_t first = ag_block_begin(k, channels, shape->c);
        ag_rows_to_float(w + first, shape->c, 1, taps, channels, 0, scratch);
        AG_SYMBOL(depthwise2d_dx_f32)(dy + first, scratch, dx + (ptrdiff_t)first * s.x_c, n, &s);
    }
}

/* Sets s for a block of s->oh rows of dy from row p on, and its rows of x, which become floats; false where
 * all of these are padding. s->h is at least 1, also where the windows of all rows of a block are above x. */
static AG_NOINLINE bool ag_rows_of_block(ag_conv2d_shape *s, const int8_t *x, int32_t p, int32_t x_zero,
                                         float *block, const ag_conv2d_shape *shape) {
    const int32_t span = (shape->kh - 1) * shape->dilation_h + 1;
    const int32_t top = p * s->stride_h - shape->pad_top, begin = top > 0 ? top : 0;
    s->oh = ag_min(shape->oh - p, AG_BLOCK_ROWS);
    s->h = ag_min(top + (s->oh - 1) * s->stride_h + span, shape->h) - begin;
    s->h = s->h > 1 ? s->h : 1;
    s->pad_top = begin - top;
    x += (ptrdiff_t)begin * shape->x_h;
    for (int32_t i = 0; i < s->h && begin < shape->h; i++, x += shape->x_h, block += s->x_h) {
        ag_rows_to_float(x, shape->x_w, shape->x_c, s->w, s->c, x_zero, block);
    }
    return begin < shape->h;
}

ALWAYS_INLINE void ag_dw_by_rows(ag_conv2d_dw_f32_fn *kernel, const int8_t *x, const float *dy, float *dw,
                                 int32_t n, int32_t x_zero, float *block, const ag_conv2d_shape *shape,
                                 float alpha, float beta) {
    ag_conv2d_shape s = *shape;
    s.x_w = s.c;
    s.x_h = s.w * s.c;
    s.x_c = 1;
    AG_SCRATCH_NEEDED(4 * s.x_h * ((AG_BLOCK_ROWS - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1));
    for (; n > 0; n--, x += s.x_n) {
        for (int32_t p = 0; p < shape->oh; p += s.oh, dy += (ptrdiff_t)s.oh * s.ow * s.ldy) {
            if (ag_rows_of_block(&s, x, p, x_zero, block, shape)) {
                kernel(block, dy, dw, 1, &s, alpha, beta);
                beta = 1.0f;
            }
        }
    }
}

void AG_SYMBOL(conv2d_dw_s8_f32)(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                 void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_dw_by_rows(AG_SYMBOL(conv2d_dw_f32), x, dy, dw, n, x_zero, scratch, shape, alpha, beta);
}

void AG_SYMBOL(depthwise2d_dw_s8_f32)(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                      void *scratch, const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_dw_by_rows(AG_SYMBOL(depthwise2d_dw_f32), x, dy, dw, n, x_zero, scratch, shape, alpha, beta);
}
