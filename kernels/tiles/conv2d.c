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
 *     +--+----------+--+
 *
 * With AG_STACK_PANEL (schedules.h), a panel of the weights of N channels is packed first, and used for all
 * pixels:
 *
 *     w[o][row i][k]  ->  panel[row i][k][N]    as many rows of the window as fit AG_STACK_PANEL elements
 *
 * Weights are not packed where there are few pixels or one row does not fit. With AG_SCRATCH_PANEL a region
 * packs the weights of its valid taps in scratch memory, if it has some. */
#include "ag_kernels.h"
#include "tiles/conv2d_group.h"
#include "tiles/epilogue.h"
#include "tiles/pixel_tiles.h"
#include "tiles/tap_ranges.h"
#include "tiles/vectors.h"
#include "tiles/window_products.h"

/* One part of the computation: the sums over rows row ... row_end - 1 of the windows. The weights of a filter
 * are w_step apart, which is AG_TILE_N in a packed panel. */
typedef struct {
    const ag_conv2d_group *g;
    int32_t n, w_step, row, row_end;
} ag_conv2d_part;

/* All output channels of the pixels in t, whose a, c, k, k_runs and skips are set, with AG_GENERAL_TILES; `w`
 * is the first weight of the sum. */
static void ag_conv2d_all_channels(ag_tile *t, const float *w, const ag_conv2d_part *part) {
    const ag_conv2d_group *g = part->g;
    float *c = t->c;
    t->c_column = 0;
    if (part->w_step != 1) {
        t->columns = g->outputs;
        t->b[0] = w;
        AG_MICROKERNEL(nn)(t);
        return;
    }
    for (int32_t o = 0; o < g->outputs; o += AG_TILE_N) {
        t->columns = g->outputs - o < AG_TILE_N ? g->outputs - o : AG_TILE_N;
        for (int32_t j = 0; j < t->columns; j++, w += g->filter) {
            t->b[j] = w;
        }
        t->c_column = o;
        t->c = c + o;
        AG_MICROKERNEL(nt)(t);
    }
}

/* The same of a tile of pixels. t->a, k, k_runs and skips are set; `w` is the first weight of the
 * sum. */
static void ag_conv2d_output_channels(ag_tile *t, const ag_pixel_tile *pixels, const float *w,
                                      const ag_conv2d_part *part) {
    const ag_conv2d_group *g = part->g;
    const ptrdiff_t filter = g->filter;
    int32_t o = 0;
    if (AG_SINGLE_PIXELS && ag_single_pixels(pixels->count, t->k)) {
        ag_pixels_one_by_one(t, pixels, w, (int32_t)filter, g->outputs, false);
        return;
    }
    t->c_step = ag_bytes(g->s->ldy);
    t->c = pixels->dst[0];
    if (pixels->constant_stride && g->outputs >= AG_TILE_N) {
        o = ag_tile_run(AG_MICROKERNEL(nt), t, g->outputs, w, filter, AG_TILE_N);
        w += o * filter;
    }
    for (; o < g->outputs; o += AG_TILE_N) {
        const int32_t left = g->outputs - o, end = left < AG_TILE_N ? left : AG_TILE_N;
        for (int32_t j = 0; j < AG_TILE_N; j++) {
            t->b[j] = w;
            w += j + 1 < end ? filter : 0;
        }
        w += filter;
        ag_edge_tile(AG_MICROKERNEL(nt), t, pixels, o, 0, end, 1);
    }
}

/* The same of all pixels of a region, by panels in scratch memory. */
static AG_NOINLINE void ag_conv2d_region_panels(ag_tile *t, const ag_pixel_cursor *cursor, const float *w,
                                                const ag_conv2d_group *g) {
    const ptrdiff_t step = t->k + t->b_skip / (int32_t)sizeof(float);
    for (int32_t o = 0; o < g->outputs; o += AG_PANEL_COLUMNS, w += AG_PANEL_COLUMNS * g->filter) {
        for (int32_t run = 0; run < t->k_runs; run++) {
            ag_pack_columns(g->panel + (ptrdiff_t)run * t->k * AG_PANEL_COLUMNS, w + run * step, g->filter,
                            t->k, AG_PANEL_COLUMNS);
        }
        ag_panel_pixels(t, cursor, o, g->panel);
    }
}

/* The pixels of a region, and the first valid tap of their windows, which is in row `first` of them. */
ALWAYS_INLINE void ag_begin_region(ag_pixel_cursor *cursor, const float *x, float *y, ag_tap_range vertical,
                                   ag_tap_range horizontal, int32_t first, int32_t n,
                                   const ag_conv2d_shape *s) {
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    const int32_t height = vertical.end - vertical.begin, width = horizontal.end - horizontal.begin;
    cursor->src = x + (ptrdiff_t)(vertical.begin * s->stride_h - s->pad_top) * s->x_h + first * row_step;
    cursor->src +=
        (ptrdiff_t)(horizontal.begin * s->stride_w - s->pad_left) * s->x_w + horizontal.first * tap_step;
    cursor->dst = y + ((ptrdiff_t)vertical.begin * s->ow + horizontal.begin) * s->ldy;
    cursor->src_step = (ptrdiff_t)s->stride_w * s->x_w;
    cursor->src_row = (ptrdiff_t)s->stride_h * s->x_h - width * cursor->src_step;
    cursor->src_image = s->x_n - (ptrdiff_t)height * s->stride_h * s->x_h;
    cursor->dst_step = s->ldy;
    cursor->dst_row = (ptrdiff_t)(s->ow - width) * s->ldy;
    cursor->dst_image = (ptrdiff_t)(s->oh - height) * s->ow * s->ldy;
    ag_begin_pixels(cursor, n, height, width);
}

/* The pixels of y whose windows have the same valid taps along both axes. */
static void ag_conv2d_region(const float *x, const float *w, float *y, ag_tap_range vertical,
                             ag_tap_range horizontal, const ag_conv2d_part *part) {
    const ag_conv2d_group *g = part->g;
    const ag_conv2d_shape *s = g->s;
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    const ptrdiff_t tap_step = (ptrdiff_t)s->dilation_w * s->x_w;
    const int32_t columns = horizontal.last - horizontal.first, row_length = columns * g->channels;
    const int32_t first = part->row > vertical.first ? part->row : vertical.first;
    const int32_t last = part->row_end < vertical.last ? part->row_end : vertical.last;
    ag_pixel_cursor cursor;
    ag_tile t;
    ag_begin_region(&cursor, x, y, vertical, horizontal, first, part->n, s);
    if (last <= first || columns <= 0) {
        if (part->row == 0 && (vertical.last <= vertical.first || columns <= 0)) {
            ag_zero_pixels(&cursor, g->outputs, 1);
        }
        return;
    }
    w += ((ptrdiff_t)(first - part->row) * s->kw + horizontal.first) * g->channels * part->w_step;
    t.c = y;
    t.alpha = 1.0f;
    t.beta = first > vertical.first ? 1.0f : 0.0f;
    t.k = row_length;
    t.k_runs = last - first;
    t.a_skip = ag_bytes(row_step - row_length);
    t.b_skip = ag_bytes(((ptrdiff_t)s->kw * g->channels - row_length) * part->w_step);
    t.b_step = ag_bytes(part->w_step);
    t.a_step = ag_bytes(1);
    int32_t blocks = 1; /* of k-runs */
    ag_set_blocks(&t, blocks, 0, 0);
    ag_one_tile(&t);
    if (!ag_taps_contiguous(g, columns)) {
        if (AG_GENERAL_TILES ? part->w_step == 1 : s->x_c != 1) {
            const ag_window_layout l = {s->kw, g->channels, row_step, tap_step, s->x_c, g->filter};
            for (; cursor.remaining > 0; cursor.remaining--) {
                ag_window_products(cursor.dst, cursor.src, last - first, columns, w, g->outputs, &l);
                if (cursor.remaining > 1) {
                    ag_next_pixel(&cursor);
                }
            }
            return;
        }
        t.a_step = ag_bytes(s->x_c); /* a k-run is the channels of a tap */
        t.k = g->channels;
        t.k_runs = columns;
        t.a_skip = ag_bytes(tap_step - (ptrdiff_t)g->channels * s->x_c);
        t.b_skip = 0;
        blocks = last - first;
        ag_set_blocks(&t, blocks, row_step, (ptrdiff_t)s->kw * g->channels * part->w_step);
    }
    if (AG_SCRATCH_PANEL && blocks == 1 && s->x_c == 1 && ag_packs(&cursor, g->outputs, g->panel)) {
        ag_conv2d_region_panels(&t, &cursor, w, g);
        return;
    }
    while (cursor.remaining > 0) {
        ag_pixel_tile pixels;
        if (AG_GENERAL_TILES) {
            ag_next_pixels(&t, &pixels, &cursor);
            ag_conv2d_all_channels(&t, w, part);
            continue;
        }
        t.beta = 0.0f;
        if (AG_TILE_RUNS && blocks == 1) {
            ag_row_tiles(AG_MICROKERNEL(nt), &t, &cursor, g->outputs, w, g->filter, AG_TILE_N);
        }
        ag_next_pixel_tile(&pixels, &cursor);
        for (int32_t row = 0; row < blocks; row++) {
            for (int32_t i = 0; i < AG_TILE_M; i++) {
                t.a[i] = pixels.src[i] + row * row_step;
            }
            ag_conv2d_output_channels(&t, &pixels, w + (ptrdiff_t)row * s->kw * g->channels, part);
            t.beta = 1.0f;
        }
    }
}

/* One group of all images. */
static void ag_conv2d_regions(const float *x, const float *w, float *y, const ag_conv2d_part *part) {
    const ag_conv2d_shape *s = part->g->s;
    ag_tap_range vertical, horizontal;
    for (vertical.end = 0; vertical.end < s->oh;) {
        vertical =
            ag_tap_range_from(vertical.end, s->oh, s->stride_h, s->pad_top, s->kh, s->dilation_h, s->h);
        for (horizontal.end = 0; horizontal.end < s->ow;) {
            horizontal = ag_tap_range_from(horizontal.end, s->ow, s->stride_w, s->pad_left, s->kw,
                                           s->dilation_w, s->w);
            ag_conv2d_region(x, w, y, vertical, horizontal, part);
        }
    }
}

/* The same, panel by panel, with AG_STACK_PANEL; `panel_rows` rows of the windows fit a panel. */
static AG_NOINLINE void ag_conv2d_panels(const float *x, const float *w, float *y, int32_t n,
                                         int32_t panel_rows, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const int32_t row_length = s->kw * g->channels;
    float panel[AG_STACK_PANEL > 0 ? AG_STACK_PANEL : 1];
    for (int32_t o = 0; o < g->outputs; o += AG_TILE_N, w += AG_TILE_N * g->filter) {
        ag_conv2d_group columns = *g;
        ag_conv2d_part part = {&columns, n, AG_TILE_N, 0, 0};
        columns.outputs = g->outputs - o < AG_TILE_N ? g->outputs - o : AG_TILE_N;
        for (; part.row < s->kh; part.row = part.row_end) {
            part.row_end = s->kh - part.row < panel_rows ? s->kh : part.row + panel_rows;
            ag_pack_columns(panel, w + (ptrdiff_t)part.row * row_length, g->filter,
                            (part.row_end - part.row) * row_length, columns.outputs);
            ag_conv2d_regions(x, panel, y + o, &part);
        }
    }
}

static void ag_conv2d_tiled(const float *x, const float *w, float *y, int32_t n, float *panel,
                            const ag_conv2d_shape *s) {
    ag_conv2d_group g = ag_conv2d_group_of(s);
    const ag_conv2d_part all = {&g, n, 1, 0, s->kh};
    g.panel = panel;
    for (int32_t i = 0; i < s->groups; i++) {
        const int32_t panel_rows = AG_STACK_PANEL / AG_TILE_N / (s->kw * g.channels);
        if (AG_STACK_PANEL > 0 && panel_rows > 0 && n * s->oh * s->ow >= AG_PANEL_PIXELS) {
            ag_conv2d_panels(x, w, y, n, panel_rows, &g);
        } else {
            ag_conv2d_regions(x, w, y, &all);
        }
        x += (ptrdiff_t)g.channels * s->x_c;
        w += (ptrdiff_t)g.outputs * g.filter;
        y += g.outputs;
    }
}

void AG_SYMBOL(conv2d_f32)(const float *x, const float *w, float *y, int32_t n, void *scratch,
                           const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    ag_conv2d_tiled(x, w, y, n, scratch, shape);
    AG_FINISH(epilogue, y, shape->ldy, n * shape->oh * shape->ow, shape->o);
}
