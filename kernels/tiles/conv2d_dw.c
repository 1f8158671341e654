/* Weight gradient of a convolution as tiles of AG_TILE_M output channels x AG_TILE_N elements of a row of the
 * window, reduced over the pixels of dy:
 *
 *     dw[o .. o+M, i, j .. j+N] += sum over (p, q) of dy[p, q, o .. o+M] x[window(p, q), i, j .. j+N]
 *
 *            N elements of row i of the window
 *           +-----------+
 *     M dy  |  dw tile  |    k-runs: rows of dy; k: pixels of a row of dy whose windows have all N elements
 *           +-----------+    inside x. Pixels that have only some inside (padding) are added column of dy by
 *                            column. */
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

static inline bool ag_contains(ag_window_range range, int32_t window) {
    return window >= range.begin && window < range.end;
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

/* The steps of a reduction over t->k_runs rows of t->k windows, which become one run where rows follow each
 * other. */
static inline void ag_set_dw_steps(ag_tile *t, const ag_conv2d_shape *s) {
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    t->a_step = ag_bytes(s->ldy);
    t->b_step = ag_bytes(x_step);
    t->a_skip = ag_bytes((ptrdiff_t)(s->ow - t->k) * s->ldy);
    t->b_skip = ag_bytes(x_row - t->k * x_step);
    if (t->a_skip == 0 && t->b_skip == 0) {
        t->k *= t->k_runs;
        t->k_runs = 1;
    }
}

#if AG_GENERAL_TILES
/* The element's windows inside x, along the row. */
static ag_window_range ag_windows_with_element(int32_t element, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    return ag_windows_with_tap(element / g->channels * s->dilation_w - s->pad_left, s->ow, s->stride_w, s->w);
}

/* The sums of elements first ... first + count - 1 over pixels of dy from column q on, for output channels
 * from o on; t has all but operands. Where the elements are apart in x, there are at most AG_TILE_N. */
static void ag_dw_sums(ag_tile *t, const ag_dw_row *r, int32_t o, int32_t first, int32_t count, int32_t q,
                       bool contiguous) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const float *x = r->x + (ptrdiff_t)r->vertical.begin * s->stride_h * s->x_h;
    x += ((ptrdiff_t)q * s->stride_w - s->pad_left) * s->x_w;
    t->columns = count;
    t->a[0] = r->dy + ((ptrdiff_t)r->vertical.begin * s->ow + q) * s->ldy + o;
    for (int32_t j = 0; j < (contiguous ? 1 : count); j++) {
        const int32_t element = first + j;
        t->b[j] = x + (ptrdiff_t)(element / g->channels) * s->dilation_w * s->x_w +
                  (ptrdiff_t)(element % g->channels) * s->x_c;
    }
    (contiguous ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(t);
}

/* Adds to sums, of the elements `first` and up, those over the windows that have only some of them inside x:
 * outside of `common`, but not of `all`. */
static AG_NOINLINE void ag_dw_edges(const ag_tile *t, float *sums, const ag_dw_row *r, int32_t o,
                                    int32_t first, int32_t count, ag_window_range common, ag_window_range all,
                                    bool contiguous) {
    const ag_conv2d_shape *s = r->g->s;
    ag_tile edge = *t;
    edge.beta = 1.0f;
    edge.k = r->vertical.end - r->vertical.begin;
    edge.k_runs = 1;
    edge.a_step = ag_bytes((ptrdiff_t)s->ow * s->ldy);
    edge.b_step = ag_bytes((ptrdiff_t)s->stride_h * s->x_h);
    for (int32_t q = all.begin; q < all.end && edge.k > 0; q++) {
        int32_t begin = first, end = first + count;
        if (ag_contains(common, q)) {
            q = common.end - 1;
            continue;
        }
        while (begin < end && !ag_contains(ag_windows_with_element(begin, r->g), q)) {
            begin++;
        }
        while (begin < end && !ag_contains(ag_windows_with_element(end - 1, r->g), q)) {
            end--;
        }
        edge.c = sums + begin - first;
        if (begin < end) {
            ag_dw_sums(&edge, r, o, begin, end - begin, q, contiguous);
        }
    }
}

enum { AG_DW_SUMS = 4 * AG_TILE_M };

/* Elements first ... first + count - 1 of the row; where not the same windows have all of them inside x,
 * there are at most AG_TILE_N. */
static void ag_dw_elements(const ag_dw_row *r, int32_t first, int32_t count, bool contiguous) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const ag_window_range low = ag_windows_with_element(first, g);
    const ag_window_range high = ag_windows_with_element(first + count - 1, g);
    const ag_window_range common = {low.begin, high.end}, all = {high.begin, low.end};
    const bool edges = low.begin != high.begin || low.end != high.end;
    const int32_t rows = r->vertical.end > r->vertical.begin ? r->vertical.end - r->vertical.begin : 0;
    float sums[AG_DW_SUMS * AG_TILE_N], *dw = r->dw + first;
    ag_tile t;
    t.rows = g->outputs;
    t.alpha = r->alpha;
    t.beta = r->beta;
    t.c_rows = NULL;
    t.c_step = ag_bytes(g->filter);
    t.c = dw;
    t.k = common.end > common.begin ? common.end - common.begin : 0;
    t.k_runs = t.k > 0 ? rows : 0;
    ag_set_dw_steps(&t, s);
    ag_set_blocks(&t, r->n, (ptrdiff_t)s->oh * s->ow * s->ldy, s->x_n);
    if (!edges) {
        ag_dw_sums(&t, r, 0, first, count, common.begin, contiguous);
        return;
    }
    t.alpha = 1.0f;
    t.beta = 0.0f;
    t.c = sums;
    t.c_step = ag_bytes(AG_TILE_N);
    for (int32_t o = 0; o < g->outputs; o += AG_DW_SUMS) {
        t.rows = g->outputs - o < AG_DW_SUMS ? g->outputs - o : AG_DW_SUMS;
        ag_dw_sums(&t, r, o, first, count, common.begin, contiguous);
        ag_dw_edges(&t, sums, r, o, first, count, common, all, contiguous);
        for (int32_t i = 0; i < t.rows; i++, dw += g->filter) {
            const float *sum = sums + (ptrdiff_t)i * AG_TILE_N;
            for (int32_t j = 0; j < count; j++) {
                dw[j] = r->beta == 0.0f ? r->alpha * sum[j] : r->alpha * sum[j] + r->beta * dw[j];
            }
        }
    }
}

/* All elements of the row: as one where the same windows have them inside x, or tap by tap, or several taps
 * at once where they have few channels. */
static void ag_dw_row_elements(const ag_dw_row *r, int32_t row_length) {
    const ag_conv2d_group *g = r->g;
    const ag_window_range low = ag_windows_with_element(0, g);
    const ag_window_range high = ag_windows_with_element(row_length - 1, g);
    const bool same = low.begin == high.begin && low.end == high.end;
    const bool contiguous = ag_taps_contiguous(g, g->s->kw);
    int32_t step = 2 * g->channels < AG_TILE_N ? AG_TILE_N : g->channels;
    if (contiguous && same) {
        step = row_length;
    } else if (!contiguous && step > AG_TILE_N) {
        step = AG_TILE_N;
    }
    for (int32_t j = 0; j < row_length; j += step) {
        ag_dw_elements(r, j, row_length - j < step ? row_length - j : step, contiguous);
    }
}
#else
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

/* Adds the contributions of the pixels outside the common range, column of dy by column: the micro-kernel
 * computes a whole tile, of which the elements that are inside x are added. x and dy of one image. */
static AG_NOINLINE void ag_dw_edges(float sums[AG_TILE_M][AG_TILE_N], const float *x, const float *dy,
                                    const ag_column_tile *columns, ag_window_range vertical,
                                    const ag_conv2d_shape *s) {
    float products[AG_TILE_M][AG_TILE_N];
    ag_tile t;
    ag_one_tile(&t);
    t.k = vertical.end - vertical.begin;
    t.k_runs = 1;
    t.a_step = ag_bytes((ptrdiff_t)s->ow * s->ldy);
    t.b_step = ag_bytes((ptrdiff_t)s->stride_h * s->x_h);
    t.c = &products[0][0];
    t.c_step = ag_bytes(AG_TILE_N);
    t.alpha = 1.0f;
    t.beta = 0.0f;
    x += vertical.begin * (ptrdiff_t)s->stride_h * s->x_h;
    dy += (ptrdiff_t)vertical.begin * s->ow * s->ldy;
    for (int32_t q = 0; q < s->ow && t.k > 0; q++) {
        const float *pixel = x + (ptrdiff_t)q * s->stride_w * s->x_w;
        int32_t first = 0, end = AG_TILE_N;
        if (ag_contains(columns->common, q)) {
            q = columns->common.end - 1;
            continue;
        }
        while (first < end && !ag_contains(columns->horizontal[first], q)) {
            first++;
        }
        while (first < end && !ag_contains(columns->horizontal[end - 1], q)) {
            end--;
        }
        if (first == end) {
            continue;
        }
        t.a[0] = dy + (ptrdiff_t)q * s->ldy;
        for (int32_t j = 0; j < AG_TILE_N; j++) {
            t.b[j] = pixel + columns->offset[j < first || j >= end ? first : j];
        }
        AG_MICROKERNEL(tg)(&t);
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            for (int32_t j = first; j < end; j++) {
                sums[i][j] += products[i][j];
            }
        }
    }
}

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
            ag_dw_edges(sums, r->x + (ptrdiff_t)image * s->x_n, r->dy + image * dy_image + o, columns,
                        r->vertical, s);
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

/* The full tiles from `first` on that make a run with the first one, `tile`: the same windows, elements that
 * follow each other in x. */
static int32_t ag_dw_run(const ag_column_tile *tile, int32_t first, int32_t row_length,
                         const ag_conv2d_group *g) {
    int32_t tiles = 1;
    if (!AG_TILE_RUNS || !tile->contiguous || g->outputs % AG_TILE_M != 0) {
        return 1;
    }
    for (int32_t next = AG_TILE_N; first + next + AG_TILE_N <= row_length; next += AG_TILE_N, tiles++) {
        const ag_column_tile other = ag_column_tile_at(first + next, row_length, g);
        if (!other.contiguous || other.edges || other.offset[0] != tile->offset[0] + next ||
            other.common.begin != tile->common.begin || other.common.end != tile->common.end) {
            break;
        }
    }
    return tiles;
}

/* Elements of the row from `first` on for all output channels: a run of tiles, or AG_TILE_N, or all it has.
 * The first `column_overlap` of them are already stored (edge tile). Returns the number of tiles. */
static int32_t ag_dw_column_tiles(const ag_dw_row *r, int32_t first, int32_t column_overlap,
                                  int32_t row_length) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const ag_column_tile tile = ag_column_tile_at(first, row_length, g);
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    const float *dy = r->dy + ((ptrdiff_t)r->vertical.begin * s->ow + tile.common.begin) * s->ldy;
    const float *x = r->x + r->vertical.begin * x_row + tile.common.begin * x_step;
    float sums[AG_TILE_M][AG_TILE_N], *dw = r->dw + first;
    int32_t o = 0, tiles = 1;
    ag_tile t;
    ag_one_tile(&t);
    t.k = tile.common.end - tile.common.begin;
    t.k_runs = r->vertical.end - r->vertical.begin;
    ag_set_dw_steps(&t, s);
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t.b[j] = x + tile.offset[j];
    }
    if (r->n == 1 && !tile.edges && t.k > 0 && t.k_runs > 0 && column_overlap == 0 &&
        row_length >= AG_TILE_N) {
        t.alpha = r->alpha;
        t.beta = r->beta;
        t.c_step = ag_bytes(g->filter);
        tiles = ag_dw_run(&tile, first, row_length, g);
        for (; o + AG_TILE_M <= g->outputs; o += AG_TILE_M) {
            t.a[0] = dy + o;
            t.c = dw + o * g->filter;
            if (tiles > 1) {
                ag_tile_run(AG_MICROKERNEL(tn), &t, tiles, x + tile.offset[0], AG_TILE_N, 1);
            } else {
                (tile.contiguous ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(&t);
            }
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
    return tiles;
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

#endif

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
#if AG_GENERAL_TILES
            ag_dw_row_elements(&r, row_length);
#else
            if (g.outputs < AG_TILE_M) {
                ag_dw_scalar(&r, row_length);
                continue;
            }
            for (int32_t j = 0; j < row_length;) {
                const int32_t column_overlap =
                    row_length >= AG_TILE_N && j + AG_TILE_N > row_length ? j + AG_TILE_N - row_length : 0;
                j += AG_TILE_N * ag_dw_column_tiles(&r, j - column_overlap, column_overlap, row_length);
            }
#endif
        }
    }
}

void AG_SYMBOL(conv2d_dw_f32)(const float *x, const float *dy, float *dw, int32_t n,
                              const ag_conv2d_shape *shape, float alpha, float beta) {
    ag_conv2d_dw_tiled(x, dy, dw, n, shape, alpha, beta);
}
