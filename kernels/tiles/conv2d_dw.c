/* Weight gradient of a convolution as tiles of AG_TILE_M output channels x AG_TILE_N elements of a row of the
 * window, reduced over the pixels of dy:
 *
 *     dw[o .. o+M, i, j .. j+N] += sum over (p, q) of dy[p, q, o .. o+M] x[window(p, q), i, j .. j+N]
 *
 *            N elements of row i of the window
 *           +-----------+
 *     M dy  |  dw tile  |    k-runs: rows of dy; k: pixels of a row of dy whose windows have all N elements
 *           +-----------+    inside x. Pixels that have only some inside (padding) are added by scalar code.
 */
#include "ag_kernels.h"
#include "tiles/conv2d_group.h"

/* The windows along an axis for which a given tap is inside x: begin ... end - 1. */
typedef struct {
    int32_t begin, end;
} ag_window_range;

/* For the tap at `offset` from the start of the window; window p starts at p * stride. */
static inline ag_window_range ag_windows_with_tap(int32_t offset, int32_t windows, int32_t stride,
                                                  int32_t extent) {
    ag_window_range r;
    r.begin = offset < 0 ? (stride - 1 - offset) / stride : 0;
    r.end = offset >= extent ? 0 : (extent - 1 - offset) / stride + 1;
    r.end = r.end < windows ? r.end : windows;
    return r;
}

/* The columns of a tile: elements of a row of the window, taps outermost, channels innermost. */
typedef struct {
    ptrdiff_t offset[AG_TILE_N]; /* offset in x from the start of the window's row */
    ag_window_range horizontal[AG_TILE_N], common;
    bool contiguous, edges; /* contiguous in x; some pixels have only some of them inside */
} ag_column_tile;

static ag_column_tile ag_column_tile_at(int32_t first, int32_t row_length, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    ag_column_tile tile;
    tile.contiguous = true;
    tile.edges = false;
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        const int32_t element = first + j < row_length ? first + j : row_length - 1;
        const int32_t column = element / g->channels * s->dilation_w - s->pad_left;
        tile.offset[j] = (ptrdiff_t)column * s->x_w + (ptrdiff_t)(element % g->channels) * s->x_c;
        tile.horizontal[j] = ag_windows_with_tap(column, s->ow, s->stride_w, s->w);
        tile.contiguous = tile.contiguous && tile.offset[j] == tile.offset[0] + j;
        if (j == 0) {
            tile.common = tile.horizontal[0];
            continue;
        }
        tile.edges = tile.edges || tile.horizontal[j].begin != tile.horizontal[0].begin ||
                     tile.horizontal[j].end != tile.horizontal[0].end;
        if (tile.horizontal[j].begin > tile.common.begin) {
            tile.common.begin = tile.horizontal[j].begin;
        }
        if (tile.horizontal[j].end < tile.common.end) {
            tile.common.end = tile.horizontal[j].end;
        }
    }
    return tile;
}

/* Adds the contributions of the pixels outside the common range; x and dy of one image. */
static void ag_dw_edges(float sums[AG_TILE_M][AG_TILE_N], const float *x, const float *dy, int32_t outputs,
                        const ag_column_tile *columns, ag_window_range vertical, const ag_conv2d_shape *s) {
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        for (int32_t q = columns->horizontal[j].begin; q < columns->horizontal[j].end; q++) {
            const float *px = x + vertical.begin * (ptrdiff_t)s->stride_h * s->x_h + columns->offset[j];
            const float *pdy = dy + ((ptrdiff_t)vertical.begin * s->ow + q) * s->ldy;
            if (q >= columns->common.begin && q < columns->common.end) {
                q = columns->common.end - 1;
                continue;
            }
            px += (ptrdiff_t)q * s->stride_w * s->x_w;
            for (int32_t p = vertical.begin; p < vertical.end; p++) {
                for (int32_t i = 0; i < outputs; i++) {
                    sums[i][j] += pdy[i] * *px;
                }
                px += (ptrdiff_t)s->stride_h * s->x_h;
                pdy += (ptrdiff_t)s->ow * s->ldy;
            }
        }
    }
}

/* One row of the window in one group: x and dy at the group's first channels of the first image, dw at the
 * row's weights of the first output channel. */
typedef struct {
    const float *x, *dy;
    float *dw;
    int32_t n;
    ag_window_range vertical;
    float alpha, beta;
    const ag_conv2d_group *g;
} ag_dw_row;

/* Reduces AG_TILE_M output channels from `o` on over the images; t is set up for the first image. */
static void ag_dw_sums(float sums[AG_TILE_M][AG_TILE_N], ag_tile *t, const ag_dw_row *r,
                       const ag_column_tile *columns, int32_t o) {
    const ag_conv2d_shape *s = r->g->s;
    const ptrdiff_t dy_image = (ptrdiff_t)s->oh * s->ow * s->ldy;
    const float *b[AG_TILE_N];
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        b[j] = t->b[j];
    }
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        for (int32_t j = 0; j < AG_TILE_N; j++) {
            sums[i][j] = 0.0f;
        }
    }
    t->c = &sums[0][0];
    t->c_step = ag_bytes(AG_TILE_N);
    t->alpha = 1.0f;
    t->beta = 1.0f;
    for (int32_t image = 0; image < r->n; image++) {
        if (t->k > 0 && t->k_runs > 0) {
            (columns->contiguous ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(t);
        }
        if (columns->edges) {
            ag_dw_edges(sums, r->x + (ptrdiff_t)image * s->x_n, r->dy + image * dy_image + o, AG_TILE_M,
                        columns, r->vertical, s);
        }
        t->a[0] += dy_image;
        for (int32_t j = 0; j < AG_TILE_N; j++) {
            t->b[j] += s->x_n;
        }
    }
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t->b[j] = b[j];
    }
}

/* AG_TILE_N elements of the row from `first` on, or all it has, for all output channels. The first
 * `column_overlap` of them are already stored (edge tile). */
static void ag_dw_column_tile(const ag_dw_row *r, int32_t first, int32_t column_overlap, int32_t row_length) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const ag_column_tile tile = ag_column_tile_at(first, row_length, g);
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    const float *dy = r->dy + ((ptrdiff_t)r->vertical.begin * s->ow + tile.common.begin) * s->ldy;
    const float *x = r->x + r->vertical.begin * x_row + tile.common.begin * x_step;
    float sums[AG_TILE_M][AG_TILE_N], *dw = r->dw + first;
    int32_t o = 0;
    ag_tile t;
    t.k = tile.common.end - tile.common.begin;
    t.k_runs = r->vertical.end - r->vertical.begin;
    t.a_step = ag_bytes(s->ldy);
    t.b_step = ag_bytes(x_step);
    t.a_skip = ag_bytes((ptrdiff_t)(s->ow - t.k) * s->ldy);
    t.b_skip = ag_bytes(x_row - t.k * x_step);
    if (t.a_skip == 0 && t.b_skip == 0) {
        t.k *= t.k_runs;
        t.k_runs = 1;
    }
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t.b[j] = x + tile.offset[j];
    }
    if (r->n == 1 && !tile.edges && t.k > 0 && t.k_runs > 0 && column_overlap == 0 &&
        row_length >= AG_TILE_N) {
        t.alpha = r->alpha;
        t.beta = r->beta;
        t.c_step = ag_bytes(g->filter);
        t.c = dw;
        for (; o + AG_TILE_M <= g->outputs; o += AG_TILE_M) {
            t.a[0] = dy + o;
            (tile.contiguous ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(&t);
            t.c += AG_TILE_M * g->filter;
        }
    }
    for (; o < g->outputs; o += AG_TILE_M) {
        const int32_t row_overlap = o + AG_TILE_M > g->outputs ? o + AG_TILE_M - g->outputs : 0;
        t.a[0] = dy + o - row_overlap;
        ag_dw_sums(sums, &t, r, &tile, o - row_overlap);
        for (int32_t i = row_overlap; i < AG_TILE_M; i++) {
            for (int32_t j = column_overlap; j < AG_TILE_N && j < row_length; j++) {
                float *dst = dw + (o - row_overlap + i) * g->filter + j;
                *dst = r->beta == 0.0f ? r->alpha * sums[i][j] : r->alpha * sums[i][j] + r->beta * *dst;
            }
        }
    }
}

/* A row of the window where there are fewer output channels than AG_TILE_M. */
static void ag_dw_scalar(const ag_dw_row *r, int32_t row_length) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    for (int32_t o = 0; o < g->outputs; o++) {
        for (int32_t j = 0; j < row_length; j++) {
            const int32_t column = j / g->channels * s->dilation_w - s->pad_left;
            const ag_window_range horizontal = ag_windows_with_tap(column, s->ow, s->stride_w, s->w);
            const ptrdiff_t offset = (ptrdiff_t)column * s->x_w + (ptrdiff_t)(j % g->channels) * s->x_c;
            const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w;
            float sum = 0.0f, *dst = r->dw + o * g->filter + j;
            for (int32_t b = 0; b < r->n; b++) {
                for (int32_t p = r->vertical.begin; p < r->vertical.end; p++) {
                    const float *px =
                        r->x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)p * s->stride_h * s->x_h + offset;
                    const float *dy = r->dy + ((ptrdiff_t)b * s->oh + p) * s->ow * s->ldy + o;
                    px += horizontal.begin * x_step;
                    dy += (ptrdiff_t)horizontal.begin * s->ldy;
                    for (int32_t q = horizontal.begin; q < horizontal.end; q++, px += x_step, dy += s->ldy) {
                        sum += *px * *dy;
                    }
                }
            }
            *dst = r->beta == 0.0f ? r->alpha * sum : r->alpha * sum + r->beta * *dst;
        }
    }
}

static void ag_conv2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_conv2d_group g = ag_conv2d_group_of(s);
    const int32_t row_length = s->kw * g.channels;
    ag_dw_row r;
    r.n = n;
    r.alpha = alpha;
    r.beta = beta;
    r.g = &g;
    for (int32_t group = 0; group < s->groups; group++) {
        for (int32_t i = 0; i < s->kh; i++) {
            const int32_t offset = i * s->dilation_h - s->pad_top;
            r.vertical = ag_windows_with_tap(offset, s->oh, s->stride_h, s->h);
            r.x = x + (ptrdiff_t)group * g.channels * s->x_c + (ptrdiff_t)offset * s->x_h;
            r.dy = dy + (ptrdiff_t)group * g.outputs;
            r.dw = dw + (ptrdiff_t)group * g.outputs * g.filter + (ptrdiff_t)i * row_length;
            if (g.outputs < AG_TILE_M) {
                ag_dw_scalar(&r, row_length);
                continue;
            }
            for (int32_t j = 0; j < row_length; j += AG_TILE_N) {
                const int32_t column_overlap =
                    row_length >= AG_TILE_N && j + AG_TILE_N > row_length ? j + AG_TILE_N - row_length : 0;
                ag_dw_column_tile(&r, j - column_overlap, column_overlap, row_length);
            }
        }
    }
}

void AG_SYMBOL(conv2d_dw_f32)(const float *x, const float *dy, float *dw, int32_t n,
                              const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_conv2d_dw_tiled(x, dy, dw, n, shape, alpha, beta);
}
