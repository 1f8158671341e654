/* Convolution as tiles of AG_TILE_M pixels x AG_TILE_N output channels. The image is split into regions whose
 * windows have the same valid taps (tap_ranges.h); in each region the pixels are tiled (pixel_tiles.h).
 *
 *     y: oh x ow pixels                     one tile: C[M pixels, N output channels]
 *     +--+----------+--+                        A: M windows of x, one k-run per row of the window
 *     |  | top edge |  |                        B: N filters of w
 *     +--+----------+--+
 *     |  | interior |  |   9 regions where 3 x 3 windows have a padding of 1,
 *     +--+----------+--+   1 region without padding
 *     |  |  bottom  |  |
 *     +--+----------+--+ */
#include "ag_kernels.h"
#include "tiles/im2col.h"
#include "tiles/pixel_tiles.h"
#include "tiles/tap_ranges.h"

/* An edge tile: the output channels from `o` on, at most AG_TILE_N, computed into a local array. */
static AG_NOINLINE void ag_conv2d_edge_tile(ag_tile *t, const ag_pixel_tile *pixels, const float *w,
                                            int32_t o, const ag_conv2d_group *g) {
    const int32_t remaining = g->outputs - o, channels = remaining < AG_TILE_N ? remaining : AG_TILE_N;
    const float beta = t->beta;
    float sums[AG_TILE_M][AG_TILE_N];
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t->b[j] = w;
        w += j + 1 < channels ? g->filter : 0;
    }
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->beta = 0.0f;
    AG_MICROKERNEL(nt)(t);
    t->beta = beta;
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t j = 0; j < channels; j++) {
            float *dst = pixels->dst[i] + o + j;
            *dst = beta == 0.0f ? sums[i][j] : sums[i][j] + *dst;
        }
    }
}

/* All output channels of a tile of pixels. t->a, k, k_runs and skips are set; `w` is the first weight of the
 * sum. */
static void ag_conv2d_output_channels(ag_tile *t, const ag_pixel_tile *pixels, const float *w,
                                      const ag_conv2d_group *g) {
    /* the last tile that the micro-kernel stores to y */
    const int32_t last_full = pixels->constant_stride ? g->outputs - AG_TILE_N : -1;
    const ptrdiff_t filter = g->filter;
    int32_t o = 0;
    t->c_step = ag_bytes(g->s->ldy);
    t->c = pixels->dst[0];
    for (; o <= last_full; o += AG_TILE_N) {
        for (int32_t j = 0; j < AG_TILE_N; j++, w += filter) {
            t->b[j] = w;
        }
        AG_MICROKERNEL(nt)(t);
        t->c += AG_TILE_N;
    }
    for (; o < g->outputs; o += AG_TILE_N, w += AG_TILE_N * filter) {
        ag_conv2d_edge_tile(t, pixels, w, o, g);
    }
}

/* The pixels of a region by im2col, chunk by chunk; each chunk after the first adds to y. */
static AG_NOINLINE void ag_conv2d_im2col(ag_tile *t, const ag_pixel_cursor *region, const float *w,
                                         int32_t rows, int32_t row_length, const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    float packed[AG_TILE_M][AG_IM2COL_MAX];
    ptrdiff_t offsets[AG_IM2COL_MAX];
    ag_im2col_chunk chunk = ag_im2col_begin(rows, row_length);
    ag_pixel_tile pixels;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        t->a[i] = packed[i];
    }
    t->a_skip = 0;
    while (ag_im2col_next(&chunk)) {
        ag_pixel_cursor cursor = *region;
        ag_im2col_offsets(offsets, &chunk, g);
        t->k = chunk.length;
        t->k_runs = chunk.row_count;
        t->b_skip = ag_bytes(w_row - chunk.length);
        while (cursor.remaining > 0) {
            ag_next_pixel_tile(&pixels, &cursor);
            ag_im2col(packed, pixels.src, offsets, chunk.row_count * chunk.length);
            ag_conv2d_output_channels(t, &pixels, w + chunk.row * w_row + chunk.column, g);
        }
        t->beta = 1.0f;
    }
}

/* The pixels of y whose windows have the same valid taps along both axes. */
static void ag_conv2d_region(const float *x, const float *w, float *y, ag_tap_range vertical,
                             ag_tap_range horizontal, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    const int32_t rows = vertical.last - vertical.first, columns = horizontal.last - horizontal.first;
    const int32_t row_length = columns * g->channels, width = horizontal.end - horizontal.begin;
    ag_pixel_tile pixels;
    ag_pixel_cursor cursor;
    ag_tile t;
    cursor.src =
        x + (ptrdiff_t)(vertical.begin * s->stride_h - s->pad_top) * s->x_h + vertical.first * row_step;
    cursor.src +=
        (ptrdiff_t)(horizontal.begin * s->stride_w - s->pad_left) * s->x_w + horizontal.first * tap_step;
    cursor.dst = y + ((ptrdiff_t)vertical.begin * s->ow + horizontal.begin) * s->ldy;
    cursor.src_step = (ptrdiff_t)s->stride_w * s->x_w;
    cursor.src_row = (ptrdiff_t)s->stride_h * s->x_h - width * cursor.src_step;
    cursor.dst_step = s->ldy;
    cursor.dst_row = (ptrdiff_t)(s->ow - width) * s->ldy;
    cursor.column = 0;
    cursor.columns = width;
    cursor.remaining = (vertical.end - vertical.begin) * width;
    if (rows <= 0 || columns <= 0) {
        ag_zero_pixels(cursor, g->outputs, 1);
        return;
    }
    w += ((ptrdiff_t)vertical.first * s->kw + horizontal.first) * g->channels;
    t.alpha = 1.0f;
    t.beta = 0.0f;
    t.k = row_length;
    t.k_runs = rows;
    t.a_skip = ag_bytes(row_step - row_length);
    t.b_skip = ag_bytes((ptrdiff_t)s->kw * g->channels - row_length);
    if (!ag_taps_contiguous(g, columns)) {
        ag_conv2d_im2col(&t, &cursor, w, rows, row_length, g);
        return;
    }
    while (cursor.remaining > 0) {
        ag_next_pixel_tile(&pixels, &cursor);
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            t.a[i] = pixels.src[i];
        }
        ag_conv2d_output_channels(&t, &pixels, w, g);
    }
}

static void ag_conv2d_tiled(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *s) {
    const ag_conv2d_group g = ag_conv2d_group_of(s);
    ag_tap_range vertical, horizontal;
    for (; n > 0; n--, x += s->x_n, y += (ptrdiff_t)s->oh * s->ow * s->ldy) {
        for (int32_t i = 0; i < s->groups; i++) {
            for (vertical.end = 0; vertical.end < s->oh;) {
                vertical = ag_tap_range_from(vertical.end, s->oh, s->stride_h, s->pad_top, s->kh,
                                             s->dilation_h, s->h);
                for (horizontal.end = 0; horizontal.end < s->ow;) {
                    horizontal = ag_tap_range_from(horizontal.end, s->ow, s->stride_w, s->pad_left, s->kw,
                                                   s->dilation_w, s->w);
                    ag_conv2d_region(x + (ptrdiff_t)i * g.channels * s->x_c,
                                     w + (ptrdiff_t)i * g.outputs * g.filter, y + (ptrdiff_t)i * g.outputs,
                                     vertical, horizontal, &g);
                }
            }
        }
    }
}

void AG_SYMBOL(conv2d_f32)(const float *x, const float *w, float *y, int32_t n,
                           const ag_conv2d_shape *shape) {
    ag_conv2d_tiled(x, w, y, n, shape);
}
