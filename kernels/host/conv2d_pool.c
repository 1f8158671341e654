/* Convolution fused with max pooling, in blocks of pooled pixels: conv2d computes the windows of a block into
 * a buffer on the stack, and only the maximum of each pooling window is stored.
 *
 *     y, index: ph x pw                buffer[rows][columns][outputs]
 *     +--+----------+--+               +---+---+---+---+
 *     |  | block ---+--+--------->     | 0 | 1 | 0 | 1 |      a block of two pooling windows
 *     +--+----------+--+               +---+---+---+---+
 *     |  |          |  |               | 2 | 3 | 2 | 3 |
 *     +--+----------+--+               +---+---+---+---+
 */
#include "ag_kernels.h"
#include "tiles/conv2d_pool_windows.h"
#include "tiles/maxima.h"

#ifndef AG_POOL_BUFFER /* floats: AG_TILE_N channels of the largest pooling window, whose index is a byte */
#define AG_POOL_BUFFER (256 * AG_TILE_N)
#endif

/* `rows` x `columns` pooled pixels from row p and column q on: y, index, w and bias at the first of `outputs`
 * channels. */
static void pool_block(const float *x, const float *w, const float *bias, float *y, uint8_t *index, int32_t p,
                       int32_t rows, int32_t q, int32_t columns, int32_t outputs,
                       const ag_conv2d_pool_shape *s) {
    const int32_t top = p * s->pool_stride_h, left = q * s->pool_stride_w;
    const int32_t oh = ag_min((rows - 1) * s->pool_stride_h + s->pool_h, s->oh - top);
    const int32_t ow = ag_min((columns - 1) * s->pool_stride_w + s->pool_w, s->ow - left);
    const int32_t pad_top = s->pad_top - top * s->stride_h, pad_left = s->pad_left - left * s->stride_w;
    const ag_conv2d_shape conv = {s->h,          s->w,          s->c,        oh,          ow,      outputs,
                                  s->kh,         s->kw,         s->stride_h, s->stride_w, pad_top, pad_left,
                                  s->dilation_h, s->dilation_w, 1,           s->x_n,      s->x_h,  s->x_w,
                                  s->x_c,        outputs};
    float buffer[AG_POOL_BUFFER];
    ag_elements e = {
        .bias = bias, .row_step = (ptrdiff_t)ow * outputs, .step = outputs, .row_number = s->pool_w};
    AG_SYMBOL(conv2d_f32)(x, w, buffer, 1, NULL, &conv, NULL);
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < columns; j++) {
            const ptrdiff_t at = ((ptrdiff_t)(p + i) * s->pw + q + j) * s->o;
            const int32_t row = i * s->pool_stride_h, column = j * s->pool_stride_w;
            e.x = buffer + row * e.row_step + column * e.step;
            e.rows = ag_min(s->pool_h, oh - row);
            e.columns = ag_min(s->pool_w, ow - column);
            ag_maxima(&e, true, true, y + at, index + at, outputs);
        }
    }
}

void AG_SYMBOL(conv2d_pool_f32)(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                                int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t fit = AG_POOL_BUFFER / (s->pool_h * s->pool_w); /* channels whose pooling window fits */
    const int32_t outputs = fit < s->o ? fit - fit % AG_TILE_N : s->o, pixels = AG_POOL_BUFFER / outputs;
    const int32_t columns = ag_min((pixels / s->pool_h - s->pool_w) / s->pool_stride_w + 1, s->pw);
    const int32_t width = (columns - 1) * s->pool_stride_w + s->pool_w;
    const int32_t rows = (pixels / width - s->pool_h) / s->pool_stride_h + 1;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c, image = (ptrdiff_t)s->ph * s->pw * s->o;
    for (; n > 0; n--, x += s->x_n, y += image, index += image) {
        for (int32_t o = 0; o < s->o; o += outputs) {
            for (int32_t p = 0; p < s->ph; p += rows) {
                for (int32_t q = 0; q < s->pw; q += columns) {
                    pool_block(x, w + o * filter, bias + o, y + o, index + o, p, ag_min(rows, s->ph - p), q,
                               ag_min(columns, s->pw - q), ag_min(outputs, s->o - o), s);
                }
            }
        }
    }
}
