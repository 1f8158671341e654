/* Gradients of convolutions of which one operand is quantised: blocks of it become floats in scratch memory,
 * for the kernels of the backend's own that take floats.
 *
 *     dx:  the weights of AG_BLOCK_COLUMNS input channels, or AG_BLOCK_CHANNELS of a depthwise convolution,
 *          which give these channels of dx
 *     dw:  the rows of x below AG_BLOCK_ROWS rows of dy, which add to all of dw
 *
 * A backend with wider tiles defines AG_BLOCK_COLUMNS, and as AG_BLOCK_DX(channels) the kernel for fewer; one
 * that converts faster than a loop AG_TO_FLOATS(q, count, zero, x), of elements without gaps. */
#include "ag_kernels.h"
#include "tiles/symbols.h"

enum { AG_BLOCK_CHANNELS = 8, AG_BLOCK_ROWS = 4 };

#ifndef AG_BLOCK_COLUMNS
#define AG_BLOCK_COLUMNS 8
#endif
#ifndef AG_BLOCK_DX
#define AG_BLOCK_DX(channels) AG_SYMBOL(conv2d_dx_f32)
#endif

#ifndef AG_TO_FLOATS
#define AG_TO_FLOATS to_floats
static inline void to_floats(const int8_t *q, int32_t count, int32_t zero, float *x) {
    for (int32_t i = 0; i < count; i++) {
        x[i] = (float)(q[i] - zero);
    }
}
#endif

/* `rows` rows of integers less zero, whose elements are `step` apart, become rows of floats without gaps. */
static void ag_rows_to_float(const int8_t *q, ptrdiff_t row, ptrdiff_t step, int32_t rows, int32_t columns,
                             int32_t zero, float *x) {
    const int32_t runs = step == 1 && row == columns ? 1 : rows, run = rows / runs * columns;
    for (int32_t i = 0; i < runs; i++, q += row, x += run) {
        if (step == 1) {
            AG_TO_FLOATS(q, run, zero, x);
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
    const int32_t inputs = shape->c / shape->groups, outputs = shape->o / shape->groups;
    const int32_t channels = inputs < AG_BLOCK_COLUMNS ? inputs : AG_BLOCK_COLUMNS;
    const int32_t rows = outputs * shape->kh * shape->kw;
    ag_conv2d_shape s = *shape;
    s.c = channels;
    s.o = outputs;
    s.groups = 1;
    AG_SCRATCH_NEEDED(4 * rows * AG_BLOCK_COLUMNS);
    for (int32_t i = 0; i < shape->groups; i++, dy += outputs, dx += (ptrdiff_t)inputs * s.x_c) {
        for (int32_t k = 0; k < inputs; k += channels) {
            const int32_t first = ag_block_begin(k, channels, inputs);
            ag_rows_to_float(w + first, inputs, 1, rows, channels, 0, scratch);
            AG_BLOCK_DX(channels)(dy, scratch, dx + (ptrdiff_t)first * s.x_c, n, &s);
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

/* Rows of all images; s.h is at least 1, also where the windows of all rows of a block are above x. */
ALWAYS_INLINE void ag_dw_by_rows(ag_conv2d_dw_f32_fn *kernel, const int8_t *x, const float *dy, float *dw,
                                 int32_t n, int32_t x_zero, float *block, const ag_conv2d_shape *shape,
                                 float alpha, float beta) {
    const int32_t span = (shape->kh - 1) * shape->dilation_h + 1, width = shape->w * shape->c;
    ag_conv2d_shape s = *shape;
    s.x_w = s.c;
    s.x_h = width;
    s.x_c = 1;
    AG_SCRATCH_NEEDED(4 * width * ((AG_BLOCK_ROWS - 1) * s.stride_h + span));
    for (int32_t b = 0; b < n; b++, x += shape->x_n) {
        for (int32_t p = 0; p < shape->oh; p += s.oh, dy += (ptrdiff_t)s.oh * s.ow * s.ldy) {
            const int32_t top = p * s.stride_h - shape->pad_top, begin = top > 0 ? top : 0;
            s.oh = shape->oh - p < AG_BLOCK_ROWS ? shape->oh - p : AG_BLOCK_ROWS;
            const int32_t end = top + (s.oh - 1) * s.stride_h + span;
            s.h = (end < shape->h ? end : shape->h) - begin;
            s.pad_top = begin - top;
            if (begin >= shape->h) {
                continue; /* padding alone */
            }
            s.h = s.h > 1 ? s.h : 1;
            for (int32_t i = 0; i < s.h; i++) {
                ag_rows_to_float(x + (ptrdiff_t)(begin + i) * shape->x_h, shape->x_w, shape->x_c, s.w, s.c,
                                 x_zero, block + (ptrdiff_t)i * width);
            }
            kernel(block, dy, dw, 1, &s, alpha, beta);
            beta = 1.0f;
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
