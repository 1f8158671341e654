/* Input gradient of a convolution as tiles of AG_TILE_M pixels of dx x AG_TILE_N input channels. With stride
 * s the pixels of dx fall into s phases per axis; the pixels of one phase are reached by the same taps (a
 * transposed convolution by phases):
 *
 *     stride 2, taps 0 .. 2:   dx   0 1 2 3 4 5        phase 0: taps 2, 0
 *                                   | | | | | |        phase 1: tap 1
 *                              tap  0 1 0 1 0 1
 *                                   2   2   2
 *
 * Each tap is one k-run over the output channels. Each row of taps is one micro-kernel call that adds to dx;
 * with AG_GENERAL_TILES all rows are one call. */
#include "ag_kernels.h"
#include "tiles/conv2d_group.h"
#include "tiles/pixel_tiles.h"
#include "tiles/tap_ranges.h"
#include "tiles/vectors.h"

/* All channels of the pixels that remain, with AG_GENERAL_TILES; k, k_runs, blocks, skips and b_step are
 * set. */
static void ag_dx_general(ag_tile *t, ag_pixel_cursor *cursor, const float *w, const ag_conv2d_group *g) {
    ag_pixel_tile pixels;
    t->b[0] = w;
    t->columns = g->channels;
    t->c_column = 0;
    t->beta = 0.0f;
    while (cursor->remaining > 0) {
        ag_next_pixels(t, &pixels, cursor);
        AG_MICROKERNEL(nn)(t);
    }
}

/* The same where the channels of a pixel of dx are apart. */
static AG_NOINLINE void ag_dx_channels_apart(ag_tile *t, ag_pixel_cursor *cursor, const float *w,
                                             const ag_conv2d_group *g) {
    float sums[AG_TILE_M][AG_TILE_N], *rows[AG_TILE_M];
    ag_pixel_tile pixels;
    t->beta = 0.0f;
    t->c_rows = rows;
    t->c_column = 0;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        rows[i] = sums[i];
    }
    while (cursor->remaining > 0) {
        ag_next_pixel_tile(&pixels, cursor);
        t->rows = pixels.count;
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            t->a[i] = pixels.src[i];
        }
        for (int32_t k = 0; k < g->channels; k += AG_TILE_N) {
            t->columns = g->channels - k < AG_TILE_N ? g->channels - k : AG_TILE_N;
            t->b[0] = w + k;
            AG_MICROKERNEL(nn)(t);
            for (int32_t i = 0; i < t->rows; i++) {
                for (int32_t j = 0; j < t->columns; j++) {
                    pixels.dst[i][(ptrdiff_t)(k + j) * g->s->x_c] = sums[i][j];
                }
            }
        }
    }
}

/* All channels of a tile of pixels; t->a, k, k_runs, skips and b_step are set. */
static void ag_dx_channels(ag_tile *t, const ag_pixel_tile *pixels, const float *w, ptrdiff_t step,
                           const ag_conv2d_group *g) {
    const int32_t last = g->channels - AG_TILE_N;
    int32_t k = 0;
    if (AG_SINGLE_PIXELS && g->s->x_c == 1 && g->channels >= AG_CHANNEL_TILE &&
        ag_single_pixels(pixels->count, t->k)) {
        ag_pixels_one_by_one(t, pixels, w, (int32_t)g->filter, g->channels, true);
        return;
    }
    if (pixels->constant_stride && g->s->x_c == 1) {
        t->c = pixels->dst[0];
        t->c_step = ag_bytes(step);
        k = ag_tile_run(AG_MICROKERNEL(nn), t, g->channels, w, 1, 1);
    }
    for (; k < g->channels; k += AG_TILE_N) {
        const int32_t overlap = k > last ? k - last : 0;
        t->b[0] = w + k - overlap;
        ag_edge_tile(AG_MICROKERNEL(nn), t, pixels, k - overlap, overlap, AG_TILE_N, g->s->x_c);
    }
}

/* The same where there are fewer channels than AG_TILE_N. */
static void ag_dx_scalar(const ag_tile *t, const ag_pixel_tile *pixels, const float *w,
                         const ag_conv2d_group *g) {
    for (int32_t i = 0; i < pixels->count; i++) {
        for (int32_t k = 0; k < g->channels; k++) {
            float *dst = pixels->dst[i] + (ptrdiff_t)k * g->s->x_c;
            const float sum = ag_scalar_sum(t, t->a[i], w + k);
            *dst = t->beta == 0.0f ? sum : sum + *dst;
        }
    }
}

/* dst[p][j] = element j of row p, for k rows of AG_PANEL_COLUMNS elements, `ldb` apart. */
static inline void ag_pack_rows(float *dst, const float *b, ptrdiff_t ldb, int32_t k) {
    for (; k > 0; k--, b += ldb) {
        put_first(AG_PANEL_COLUMNS / LANES, &dst, load_first(AG_PANEL_COLUMNS / LANES, b));
    }
}

/* As ag_dx_pixels, by panels of channels, with the weights packed into g->panel; there is one row of taps, or
 * each row is one k-run. */
static AG_NOINLINE void ag_dx_panels(ag_tile *t, const ag_pixel_cursor *cursor, const float *w, int32_t v,
                                     ptrdiff_t a_row, ptrdiff_t b_row, const ag_conv2d_group *g) {
    const ptrdiff_t step = t->k * g->filter + t->b_skip / (int32_t)sizeof(float);
    const int32_t outputs = t->k, taps = t->k_runs;
    if (taps == 1 || t->a_skip == 0) {
        t->k *= taps;
        t->k_runs = v;
        t->a_skip = ag_bytes(a_row - t->k);
    }
    for (int32_t c = 0; c < g->channels; c += AG_PANEL_COLUMNS) {
        float *dst = g->panel;
        for (int32_t row = 0; row < v; row++) {
            for (int32_t tap = 0; tap < taps; tap++, dst += (ptrdiff_t)outputs * AG_PANEL_COLUMNS) {
                ag_pack_rows(dst, w + c + row * b_row + tap * step, g->filter, outputs);
            }
        }
        ag_panel_pixels(t, cursor, c, g->panel);
    }
}

/* All channels of the pixels that remain; v rows of taps, a_row and b_row elements apart. */
static void ag_dx_pixels(ag_tile *t, ag_pixel_cursor *cursor, const float *w, int32_t v, ptrdiff_t a_row,
                         ptrdiff_t b_row, const ag_conv2d_group *g) {
    ag_pixel_tile pixels;
    if (AG_SCRATCH_PANEL && (v == 1 || t->k_runs == 1 || t->a_skip == 0) && g->s->x_c == 1) {
        if (g->channels == AG_PANEL_COLUMNS && g->filter == AG_PANEL_COLUMNS) { /* w is a panel */
            ag_panel_pixels(t, cursor, 0, w);
            return;
        }
        if (ag_packs(cursor, g->channels, g->panel)) {
            ag_dx_panels(t, cursor, w, v, a_row, b_row, g);
            return;
        }
    }
    while (cursor->remaining > 0) {
        t->beta = 0.0f;
        if (AG_TILE_RUNS && v == 1 && g->s->x_c == 1) {
            ag_row_tiles(AG_MICROKERNEL(nn), t, cursor, g->channels, w, 1, 1);
        }
        ag_next_pixel_tile(&pixels, cursor);
        for (int32_t i = 0; i < v; i++) {
            const float *row = w + i * b_row;
            for (int32_t q = 0; q < AG_TILE_M; q++) {
                t->a[q] = pixels.src[q] + i * a_row;
            }
            if (g->channels < AG_TILE_N) {
                ag_dx_scalar(t, &pixels, row, g);
            } else {
                ag_dx_channels(t, &pixels, row, cursor->dst_step, g);
            }
            t->beta = 1.0f;
        }
    }
}

/* The pixels of dx that are reached by the same taps along both axes; dy, w and dx start at the group. */
static void ag_dx_region(const float *dy, const float *w, float *dx, const ag_axis *rows,
                         ag_tap_range vertical, const ag_axis *columns, ag_tap_range horizontal, int32_t n,
                         const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    const int32_t v = vertical.last - vertical.first, u = horizontal.last - horizontal.first;
    const int32_t height = vertical.end - vertical.begin, width = horizontal.end - horizontal.begin;
    const ptrdiff_t dy_row = (ptrdiff_t)s->ow * s->ldy, a_row = rows->in_tap * dy_row;
    const ptrdiff_t b_row = (ptrdiff_t)rows->w_tap * s->kw * g->channels;
    ag_pixel_cursor cursor;
    ag_tile t;
    cursor.dst = dx + ((ptrdiff_t)rows->out + (ptrdiff_t)vertical.begin * s->stride_h) * s->x_h;
    cursor.dst += ((ptrdiff_t)columns->out + (ptrdiff_t)horizontal.begin * s->stride_w) * s->x_w;
    cursor.dst_step = (ptrdiff_t)s->stride_w * s->x_w;
    cursor.dst_row = (ptrdiff_t)s->stride_h * s->x_h - width * cursor.dst_step;
    cursor.dst_image = s->x_n - (ptrdiff_t)height * s->stride_h * s->x_h;
    cursor.src = dy + (rows->in + vertical.begin + vertical.first * rows->in_tap) * dy_row;
    cursor.src += (ptrdiff_t)(columns->in + horizontal.begin + horizontal.first * columns->in_tap) * s->ldy;
    cursor.src_step = s->ldy;
    cursor.src_row = dy_row - width * cursor.src_step;
    cursor.src_image = (s->oh - height) * dy_row;
    ag_begin_pixels(&cursor, n, height, width);
    if (v <= 0 || u <= 0) {
        ag_zero_pixels(&cursor, g->channels, s->x_c);
        return;
    }
    w += (ptrdiff_t)(rows->w + vertical.first * rows->w_tap) * s->kw * g->channels;
    w += (ptrdiff_t)(columns->w + horizontal.first * columns->w_tap) * g->channels;
    t.alpha = 1.0f;
    ag_one_tile(&t);
    t.a_step = ag_bytes(1);
    t.k = g->outputs;
    t.k_runs = u;
    t.b_step = ag_bytes(g->filter);
    t.a_skip = ag_bytes((ptrdiff_t)columns->in_tap * s->ldy - g->outputs);
    t.b_skip = ag_bytes((ptrdiff_t)columns->w_tap * g->channels - g->outputs * g->filter);
    if (AG_GENERAL_TILES) {
        ag_set_blocks(&t, v, a_row, b_row);
        (s->x_c == 1 ? ag_dx_general : ag_dx_channels_apart)(&t, &cursor, w, g);
    } else {
        ag_dx_pixels(&t, &cursor, w, v, a_row, b_row, g);
    }
}

void AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32))(const float *dy, const float *w, float *dx, int32_t n,
                                           const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    ag_tap_range vertical, horizontal;
    for (int32_t i = 0; i < s->stride_h && i < s->h; i++) {
        const ag_axis rows = ag_adjoint_axis(i, s->h, s->oh, s->kh, s->stride_h, s->pad_top, s->dilation_h);
        for (int32_t j = 0; j < s->stride_w && j < s->w; j++) {
            const ag_axis columns =
                ag_adjoint_axis(j, s->w, s->ow, s->kw, s->stride_w, s->pad_left, s->dilation_w);
            for (vertical.end = 0; vertical.end < rows.count;) {
                vertical = ag_axis_range(&rows, vertical.end);
                for (horizontal.end = 0; horizontal.end < columns.count;) {
                    horizontal = ag_axis_range(&columns, horizontal.end);
                    ag_dx_region(dy, w, dx, &rows, vertical, &columns, horizontal, n, g);
                }
            }
        }
    }
}

void AG_SYMBOL(conv2d_dx_f32)(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                              const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    ag_conv2d_group g = ag_conv2d_group_of(s);
    g.panel = scratch;
    for (int32_t i = 0; i < s->groups; i++) {
        AG_OF_GROUP(AG_SYMBOL(conv2d_dx_f32))
        (dy + (ptrdiff_t)i * g.outputs, w + (ptrdiff_t)i * g.outputs * g.filter,
         dx + (ptrdiff_t)i * g.channels * s->x_c, n, &g);
    }
}
