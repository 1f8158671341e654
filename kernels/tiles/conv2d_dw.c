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
#include "tiles/local_tile.h"
#include "tiles/tap_ranges.h"

static inline bool ag_contains(ag_window_range range, int32_t window) {
    return window >= range.begin && window < range.end;
}

/* One row of the window in one group: x and dy at the group's first channels of the first image, dw at the
 * row's weights of the first output channel. `count` of its elements, from `first` on, are computed at a
 * time. `contiguous`: the elements of a pixel are contiguous in x. In the windows `common` all of them are
 * inside x. */
typedef struct {
    const float *x, *dy;
    float *dw;
    int32_t n;
    ag_window_range vertical, common;
    float alpha, beta;
    const ag_conv2d_group *g;
    int32_t first, count;
    bool contiguous;
} ag_dw_row;

/* The reduction over the common windows of all rows, which become one run where rows follow each other. */
static AG_NOINLINE void ag_set_dw_windows(ag_tile *t, const ag_dw_row *r) {
    const ag_conv2d_shape *s = r->g->s;
    const int32_t rows = r->vertical.end > r->vertical.begin ? r->vertical.end - r->vertical.begin : 0;
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    t->k = r->common.end > r->common.begin ? r->common.end - r->common.begin : 0;
    t->k_runs = t->k > 0 ? rows : 0;
    t->a_step = ag_bytes(s->ldy);
    t->b_step = ag_bytes(x_step);
    t->a_skip = ag_bytes((ptrdiff_t)s->ow * s->ldy);
    t->b_skip = ag_bytes(x_row);
    if (t->k < t->k_runs && t->a_skip != t->k * t->a_step) { /* the longer axis is a run */
        const int32_t a_step = t->a_step, b_step = t->b_step;
        t->k_runs = t->k;
        t->k = rows;
        t->a_step = t->a_skip;
        t->b_step = t->b_skip;
        t->a_skip = a_step;
        t->b_skip = b_step;
    }
    t->a_skip -= t->k * t->a_step;
    t->b_skip -= t->k * t->b_step;
    if (t->a_skip == 0 && t->b_skip == 0) {
        t->k *= t->k_runs;
        t->k_runs = 1;
    }
}

/* dw = alpha * sums + beta * dw of `rows` output channels from a[0] on and `columns` elements, those at b[0]
 * and up, or at b[j] each. t->c and its steps, the reduction over an image, alpha and beta are set. With
 * AG_GENERAL_TILES. */
static void ag_dw_general(ag_tile *t, const ag_dw_row *r, int32_t rows, int32_t columns) {
    const ag_conv2d_shape *s = r->g->s;
    t->rows = rows;
    t->columns = columns;
    t->c_rows = NULL;
    ag_set_blocks(t, r->n, (ptrdiff_t)s->oh * s->ow * s->ldy, s->x_n);
    (r->contiguous ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(t);
}

/* The same where there are fewer output channels than AG_TILE_M, or nothing to add up. */
static AG_NOINLINE void ag_dw_scalar(const ag_tile *t, int32_t rows, int32_t columns, bool contiguous) {
    for (int32_t i = 0; i < rows; i++) {
        float *dst = t->c + (ptrdiff_t)i * (t->c_step / (int32_t)sizeof(float));
        for (int32_t j = 0; j < columns; j++, dst++) {
            const float sum = ag_scalar_sum(t, t->a[0] + i, contiguous ? t->b[0] + j : t->b[j]);
            *dst = t->beta == 0.0f ? t->alpha * sum : t->alpha * sum + t->beta * *dst;
        }
    }
}

/* As ag_dw_general, without AG_GENERAL_TILES. Tiles at the end are shifted back over the ones before. */
static void ag_dw_tiles(ag_tile *t, const ag_dw_row *r, int32_t rows, int32_t columns) {
    const float *const dy = t->a[0], *const x = t->b[0];
    const bool contiguous = r->contiguous, gathered = !contiguous || columns < AG_TILE_N;
    ag_microkernel_fn *const kernel = gathered ? AG_MICROKERNEL(tg) : AG_MICROKERNEL(tn);
    float *const c = t->c;
    const int32_t c_step = t->c_step, step = c_step / (int32_t)sizeof(float);
    const float beta = t->beta;
    if (rows < AG_TILE_M || t->k == 0 || t->k_runs == 0) {
        ag_dw_scalar(t, rows, columns, contiguous);
        return;
    }
    ag_one_tile(t);
    for (int32_t j = 0; gathered && j < AG_TILE_N; j++) { /* unused columns repeat the last one */
        const int32_t column = j < columns ? j : columns - 1;
        t->b[j] = contiguous ? x + column : t->b[column];
    }
    for (int32_t i = 0; i < rows; i += AG_TILE_M) {
        const int32_t row_overlap = i + AG_TILE_M > rows ? i + AG_TILE_M - rows : 0;
        float *row = c + (ptrdiff_t)i * step;
        int32_t j = 0;
        t->a[0] = dy + i - row_overlap;
        if (row_overlap == 0 && columns >= AG_TILE_N) {
            t->c = row;
            t->c_step = c_step;
            t->beta = beta;
            if (gathered) {
                kernel(t);
                j = AG_TILE_N;
            } else {
                j = ag_tile_run(kernel, t, columns, x, 1, 1);
            }
        }
        for (; j < columns; j += AG_TILE_N) {
            const int32_t end = columns < AG_TILE_N ? columns : AG_TILE_N;
            const int32_t overlap = j + end > columns ? j + end - columns : 0;
            if (!gathered) {
                t->b[0] = x + j - overlap;
            }
            ag_local_tile(kernel, t, row + j, step, 1, row_overlap, overlap, end, beta);
        }
    }
    t->c_step = c_step;
    t->beta = beta;
}

/* The element's windows inside x, along the row. */
static ag_window_range ag_windows_with_element(int32_t element, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    return ag_windows_with_tap(element / g->channels * s->dilation_w - s->pad_left, s->ow, s->stride_w, s->w);
}

/* Adds the products of elements first ... first + count - 1 and pixels of dy from column q on; t has all but
 * operands. Where the elements are apart in x, there are at most AG_TILE_N. */
static void ag_dw_sums(ag_tile *t, const ag_dw_row *r, int32_t first, int32_t count, int32_t q) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const float *x = r->x + (ptrdiff_t)r->vertical.begin * s->stride_h * s->x_h;
    x += ((ptrdiff_t)q * s->stride_w - s->pad_left) * s->x_w;
    t->a[0] = r->dy + ((ptrdiff_t)r->vertical.begin * s->ow + q) * s->ldy;
    for (int32_t j = 0; j < (r->contiguous ? 1 : count); j++) {
        const int32_t element = first + j;
        t->b[j] = x + (ptrdiff_t)(element / g->channels) * s->dilation_w * s->x_w +
                  (ptrdiff_t)(element % g->channels) * s->x_c;
    }
    t->c = r->dw + first;
    (AG_GENERAL_TILES ? ag_dw_general : ag_dw_tiles)(t, r, g->outputs, count);
}

/* Adds the products over windows q ... last - 1 with only some of the elements inside x, column of dy by
 * column. */
static AG_NOINLINE void ag_dw_edges(ag_tile *t, const ag_dw_row *r, int32_t q, int32_t last) {
    const ag_conv2d_shape *s = r->g->s;
    t->beta = 1.0f;
    t->k = r->vertical.end - r->vertical.begin;
    t->k_runs = 1;
    t->a_step = ag_bytes((ptrdiff_t)s->ow * s->ldy);
    t->b_step = ag_bytes((ptrdiff_t)s->stride_h * s->x_h);
    for (; q < last && t->k > 0; q++) {
        int32_t begin = r->first, end = r->first + r->count;
        if (ag_contains(r->common, q)) {
            q = r->common.end - 1;
            continue;
        }
        while (begin < end && !ag_contains(ag_windows_with_element(begin, r->g), q)) {
            begin++;
        }
        while (begin < end && !ag_contains(ag_windows_with_element(end - 1, r->g), q)) {
            end--;
        }
        if (begin < end) {
            ag_dw_sums(t, r, begin, end - begin, q);
        }
    }
}

/* r->count elements of the row, from r->first on. */
static void ag_dw_elements(ag_dw_row *r) {
    const ag_window_range low = ag_windows_with_element(r->first, r->g);
    const ag_window_range high = ag_windows_with_element(r->first + r->count - 1, r->g);
    ag_tile t;
    r->common = (ag_window_range){low.begin, high.end};
    t.alpha = r->alpha;
    t.beta = r->beta;
    t.c_step = ag_bytes(r->g->filter);
    ag_set_dw_windows(&t, r);
    ag_dw_sums(&t, r, r->first, r->count, r->common.begin);
    if (low.begin != high.begin || low.end != high.end) {
        ag_dw_edges(&t, r, high.begin, low.end);
    }
}

/* The most columns that are computed at once if their elements are inside x in different windows. */
enum { AG_DW_COLUMNS = AG_GENERAL_TILES || AG_TILE_N > 12 ? AG_TILE_N : 12 };

/* All elements of the row: as one where the same windows have them inside x, or tap by tap, or several taps
 * at once where they have few channels. */
static void ag_dw_row_elements(ag_dw_row *r, int32_t row_length) {
    const ag_conv2d_group *g = r->g;
    const ag_window_range low = ag_windows_with_element(0, g);
    const ag_window_range high = ag_windows_with_element(row_length - 1, g);
    const bool same = low.begin == high.begin && low.end == high.end;
    const int32_t fill = AG_GENERAL_TILES ? 2 : 1; /* partial tiles of vectors with masks are cheap */
    int32_t step = fill * g->channels < AG_TILE_N ? AG_TILE_N : g->channels;
    const bool row_contiguous = ag_taps_contiguous(g, g->s->kw);
    r->contiguous = row_contiguous || (step == g->channels && ag_taps_contiguous(g, 1));
    if (row_contiguous && (same || row_length <= AG_DW_COLUMNS)) {
        step = row_length;
    } else if (!r->contiguous) {
        step = AG_TILE_N;
    }
    for (r->first = 0; r->first < row_length; r->first += step) {
        r->count = ag_min(row_length - r->first, step);
        ag_dw_elements(r);
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
            ag_dw_row_elements(&r, row_length);
        }
    }
}

void AG_SYMBOL(conv2d_dw_f32)(const float *x, const float *dy, float *dw, int32_t n,
                              const ag_conv2d_shape *shape, float alpha, float beta) {
    const int32_t together = AG_GENERAL_TILES ? n : 1; /* images */
    for (int32_t i = 0; i < n; i += together) {
        ag_conv2d_dw_tiled(x, dy, dw, together, shape, alpha, i > 0 ? 1.0f : beta);
        x += shape->x_n;
        dy += (ptrdiff_t)shape->oh * shape->ow * shape->ldy;
    }
}
