/* Average pooling of 8-bit integers, four channels at a time; the last ones overlap those before. A backend's
 * file defines ag_sums_of_four, the sums of four channels of rows of elements, and includes this one. */
#include "ag_kernels.h"
#include "ag_quantization.h"
#include "tiles/symbols.h"

#include <stddef.h>

void AG_SYMBOL(avg_pool2d_s8)(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high, void *scratch,
                              const ag_pool2d_shape *shape) {
    const ag_pool2d_shape *s = shape;
    (void)scratch;
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t row = p * s->stride_h - s->pad_top, top = row < 0 ? 0 : row;
            const int32_t rows = (row + s->kh < s->h ? row + s->kh : s->h) - top;
            for (int32_t q = 0; q < s->ow; q++, y += s->c) {
                const int32_t column = q * s->stride_w - s->pad_left, left = column < 0 ? 0 : column;
                const int32_t columns = (column + s->kw < s->w ? column + s->kw : s->w) - left;
                const int32_t count = rows * columns, lines = columns * s->x_w == s->x_h ? 1 : rows;
                const int8_t *first = x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                for (int32_t next = 0; next < s->c; next += 4) {
                    const int32_t c = next + 4 > s->c ? s->c - 4 : next;
                    int32_t sums[4];
                    ag_sums_of_four(sums, first + c, lines, count / lines, s->x_h, s->x_w);
                    for (int32_t i = 0; i < 4; i++) {
                        const int32_t half = sums[i] > 0 ? count / 2 : -(count / 2);
                        y[c + i] = (int8_t)ag_limited((sums[i] + half) / count, low, high);
                    }
                }
            }
        }
    }
}
