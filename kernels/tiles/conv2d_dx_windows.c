/* Input gradient of a convolution with few input channels, also the forward pass of a transposed convolution
 * to few output channels. Tiles of AG_TILE_M pixels of dy x elements of a window are added to dx:
 *
 *     dy[M pixels, outputs] . w[outputs, taps x channels]  ->  M windows, AG_WINDOW elements or less of each
 *
 *     dx  +---+               a window for each pixel of dy; they overlap where strides are shorter than
 * windows | +-+-+
 *         +-+-+ |
 *           +---+
 */
#include "ag_kernels.h"
#include "tiles/axpy_rows.h"
#include "tiles/conv2d_group.h"
#include "tiles/tap_ranges.h"
#include "tiles/zero_image.h"

enum { AG_WINDOW = 32 };
typedef char ag_tiles_have_four_columns[AG_TILE_N == 4 ? 1 : -1]; /* as tiles.toml assumes */

/* dx += the elements of `rows` rows of taps of a window; the first row is at row `top`, column `left`. */
static void ag_add_window(float *dx, const float *elements, int32_t rows, int32_t top, int32_t left,
                          const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const int32_t i = ag_before(-top, s->dilation_h, rows), j = ag_before(-left, s->dilation_w, s->kw);
    const int32_t height = ag_before(s->h - top, s->dilation_h, rows) - i;
    const int32_t width = ag_before(s->w - left, s->dilation_w, s->kw) - j, c = g->channels;
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h,
                    tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    if (height <= 0 || width <= 0) {
        return;
    }
    dx += (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w + i * row_step + j * tap_step;
    elements += (ptrdiff_t)(i * s->kw + j) * c;
    if (ag_taps_contiguous(g, width)) {
        ag_axpy_rows(dx, ag_bytes(row_step - (ptrdiff_t)width * c), elements,
                     ag_bytes((ptrdiff_t)(s->kw - width) * c), height, width * c, 1.0f);
        return;
    }
    for (int32_t row = 0; row < height; row++, dx += row_step, elements += (ptrdiff_t)s->kw * c) {
        for (int32_t column = 0; column < width; column++) {
            for (int32_t k = 0; k < c; k++) {
                dx[column * tap_step + (ptrdiff_t)k * s->x_c] += elements[column * c + k];
            }
        }
    }
}

/* One group of an image. Windows are split into `parts` parts of about as many rows of taps; each part fills
 * a tile. t has all but operands and result. */
static void ag_dx_windows(ag_tile *t, const float *dy, const float *w, float *dx, int32_t parts,
                          const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const int32_t pixels = s->oh * s->ow;
    float elements[AG_TILE_M][AG_WINDOW];
    t->c_step = ag_bytes(AG_WINDOW);
    for (int32_t p = 0; p < pixels; p += AG_TILE_M) {
        for (int32_t i = 0; i < AG_TILE_M; i++) { /* unused rows repeat the last one */
            t->a[i] = dy + (ptrdiff_t)ag_min(p + i, pixels - 1) * s->ldy;
        }
        for (int32_t row = 0, height, left = parts; left > 0; left--, row += height) {
            height = (s->kh - row) / left;
            const int32_t columns = height * s->kw * g->channels;
            const float *taps = w + (ptrdiff_t)row * s->kw * g->channels;
            t->c = elements[0];
            if (ag_tile_run(AG_MICROKERNEL(nn), t, columns, taps, 1, 1) < columns) { /* the last ones again */
                t->c = elements[0] + columns - AG_TILE_N;
                t->b[0] = taps + columns - AG_TILE_N;
                AG_MICROKERNEL(nn)(t);
            }
            for (int32_t i = 0; i < ag_min(AG_TILE_M, pixels - p); i++) {
                const int32_t top = (p + i) / s->ow * s->stride_h - s->pad_top + row * s->dilation_h;
                ag_add_window(dx, elements[i], height, top, (p + i) % s->ow * s->stride_w - s->pad_left, g);
            }
        }
    }
}

void AG_SYMBOL(conv2d_dx_windows_f32)(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                                      const ag_conv2d_shape *shape) {
    (void)scratch;
    const ag_conv2d_shape *s = shape;
    const ag_conv2d_group g = ag_conv2d_group_of(s);
    const int32_t most = AG_WINDOW / (s->kw * g.channels), parts = (s->kh + most - 1) / most;
    ag_tile t;
    t.alpha = 1.0f;
    t.beta = 0.0f;
    t.k = g.outputs;
    t.k_runs = 1;
    t.a_step = ag_bytes(1);
    t.b_step = ag_bytes(g.filter);
    for (; n > 0; n--, dx += s->x_n, dy += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t i = 0; i < s->groups; i++) {
            float *const group = dx + (ptrdiff_t)i * g.channels * s->x_c;
            ag_zero_image(group, s->h, s->w, g.channels, s->x_h, s->x_w, s->x_c);
            ag_dx_windows(&t, dy + (ptrdiff_t)i * g.outputs, w + (ptrdiff_t)i * g.outputs * g.filter, group,
                          parts, &g);
        }
    }
}
