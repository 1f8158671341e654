/* Convolution fused with max pooling: tiles of AG_TILE_M elements of one pooling window, or of several that
 * fit, x AG_TILE_N output channels. Only the maximum of each pooling window is stored.
 *
 *     pooling window of one pooled pixel          sums[M][N]
 *     +---+---+      A: the windows of x          0 | . . . . |
 *     | 0 | 1 |      of elements 0 .. 3      ->   1 | . . . . |   -> y[N], index[N]: maximum over the rows
 *     +---+---+      B: N filters of w            2 | . . . . |
 *     | 2 | 3 |                                   3 | . . . . |
 *     +---+---+ */
#include "ag_kernels.h"
#include "tiles/im2col.h"
#include "tiles/conv2d_pool_windows.h"

/* The convolution whose result is pooled. */
static inline ag_conv2d_shape ag_pooled_conv2d(const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape conv = {s->h,       s->w,        s->c,          s->oh,         s->ow,
                                  s->o,       s->kh,       s->kw,         s->stride_h,   s->stride_w,
                                  s->pad_top, s->pad_left, s->dilation_h, s->dilation_w, 1,
                                  s->x_n,     s->x_h,      s->x_w,        s->x_c,        s->o};
    return conv;
}

static inline bool ag_same_taps(const ag_window_taps *a, const ag_window_taps *b) {
    return a->row == b->row && a->rows == b->rows && a->column == b->column && a->columns == b->columns;
}

/* The rows of a tile: pixels of the convolution, and which elements of the pooling window they are. */
typedef struct {
    int32_t p[AG_TILE_M], q[AG_TILE_M];
    uint8_t element[AG_TILE_M];
    int32_t count;
} ag_pool_rows;

/* Fills a tile with the elements of pooling window (p, q) from `element` on that exist in the convolution's
 * result; unused rows repeat the last one. Returns the element to continue with. */
static int32_t ag_pool_rows_from(ag_pool_rows *rows, int32_t element, int32_t p, int32_t q,
                                 const ag_conv2d_pool_shape *s) {
    rows->count = 0;
    for (; element < s->pool_h * s->pool_w && rows->count < AG_TILE_M; element++) {
        const int32_t row = p * s->pool_stride_h + element / s->pool_w;
        const int32_t column = q * s->pool_stride_w + element % s->pool_w;
        if (row < s->oh && column < s->ow) {
            for (int32_t i = rows->count; i < AG_TILE_M; i++) {
                rows->p[i] = row;
                rows->q[i] = column;
                rows->element[i] = (uint8_t)element;
            }
            rows->count++;
        }
    }
    return element;
}

/* The weights of up to AG_TILE_N output channels; unused columns repeat the last one. */
static inline void ag_pool_filters(ag_tile *t, const float *w, int32_t outputs, const ag_conv2d_group *g) {
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t->b[j] = w;
        w += j + 1 < outputs ? g->filter : 0;
    }
}

/* Working set of one tile of pooling elements. */
typedef struct {
    ag_tile t;
    float sums[AG_TILE_M][AG_TILE_N], partial[AG_TILE_M][AG_TILE_N];
    ag_pool_rows rows;
    ag_window_taps taps[AG_TILE_M]; /* of each row */
    ptrdiff_t offset[AG_TILE_M];    /* from the window of the first row to the window of each row */
} ag_pool_state;

/* t->c = the sums of the windows at t->a, whose valid taps are `taps`. */
static void ag_pool_tile(ag_tile *t, const ag_window_taps *taps, const float *w, int32_t outputs,
                         const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    const int32_t row_length = taps->columns * g->channels;
    w += taps->row * w_row + (ptrdiff_t)taps->column * g->channels;
    ag_pool_filters(t, w, outputs, g);
    t->k = row_length;
    t->k_runs = taps->rows;
    t->a_skip = ag_bytes((ptrdiff_t)g->s->dilation_h * g->s->x_h - row_length);
    t->b_skip = ag_bytes(w_row - row_length);
    t->beta = 0.0f;
    AG_MICROKERNEL(nt)(t);
}

/* The same by im2col, where the taps are not contiguous. */
static AG_NOINLINE void ag_pool_im2col(ag_tile *t, const ag_window_taps *taps, const float *w,
                                       int32_t outputs, const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    float packed[AG_TILE_M][AG_IM2COL_MAX];
    ptrdiff_t offsets[AG_IM2COL_MAX];
    const float *x[AG_TILE_M];
    ag_im2col_chunk chunk = ag_im2col_begin(taps->rows, taps->columns * g->channels);
    w += taps->row * w_row + (ptrdiff_t)taps->column * g->channels;
    t->a_skip = 0;
    t->beta = 0.0f;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        x[i] = t->a[i];
        t->a[i] = packed[i];
    }
    while (ag_im2col_next(&chunk)) {
        ag_im2col_offsets(offsets, &chunk, g);
        ag_im2col(packed, x, offsets, chunk.row_count * chunk.length);
        ag_pool_filters(t, w + chunk.row * w_row + chunk.column, outputs, g);
        t->k = chunk.length;
        t->k_runs = chunk.row_count;
        t->b_skip = ag_bytes(w_row - chunk.length);
        AG_MICROKERNEL(nt)(t);
        t->beta = 1.0f;
    }
}

#if AG_SINGLE_PIXELS
/* sums = those of one window at x for up to AG_TILE_N output channels. */
static void ag_pool_single(float sums[AG_TILE_N], const float *x, const ag_window_taps *taps, const float *w,
                           int32_t outputs, const ag_conv2d_group *g) {
    w += (taps->row * g->s->kw + taps->column) * (ptrdiff_t)g->channels;
    for (int32_t i = 0; i < taps->rows; i++) {
        AG_SYMBOL(gemv_f32)(w, (int32_t)g->filter, x, sums, outputs < AG_TILE_N ? outputs : AG_TILE_N,
                            taps->columns * g->channels, 1.0f, i > 0 ? 1.0f : 0.0f, NULL);
        x += (ptrdiff_t)g->s->dilation_h * g->s->x_h;
        w += (ptrdiff_t)g->s->kw * g->channels;
    }
}
#endif

/* state->sums of state->rows; one micro-kernel call for the rows with the same valid taps. */
static void ag_pool_sums(ag_pool_state *state, const float *x, const float *w, int32_t outputs,
                         const ag_conv2d_group *g) {
    bool done[AG_TILE_M] = {false}, selected[AG_TILE_M];
    state->t.c = &state->partial[0][0];
    for (int32_t first = 0; first < state->rows.count; first++) {
        const ag_window_taps *taps = &state->taps[first];
        const bool contiguous = ag_taps_contiguous(g, taps->columns);
        if (done[first]) {
            continue;
        }
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            selected[i] = i >= first && i < state->rows.count && ag_same_taps(taps, &state->taps[i]);
            done[i] = done[i] || selected[i];
            state->t.a[i] = x + (selected[i] ? state->taps[i].offset : taps->offset);
            for (int32_t j = 0; j < AG_TILE_N; j++) {
                state->partial[i][j] = 0.0f;
            }
        }
        if (taps->rows > 0 && taps->columns > 0) {
#if AG_SINGLE_PIXELS
            int32_t count = 0;
            for (int32_t i = first; i < state->rows.count; i++) {
                count += selected[i];
            }
            if (count == 1 && contiguous) {
                ag_pool_single(state->sums[first], state->t.a[first], taps, w, outputs, g);
                continue;
            }
#endif
            (contiguous ? ag_pool_tile : ag_pool_im2col)(&state->t, taps, w, outputs, g);
        }
        for (int32_t i = first; i < AG_TILE_M; i++) {
            for (int32_t j = 0; selected[i] && j < AG_TILE_N; j++) {
                state->sums[i][j] = state->partial[i][j];
            }
        }
    }
}

#ifndef AG_POOL_MAX
#define AG_POOL_MAX ag_pool_max
/* y = max(y, sums + bias) over `count` rows of sums for up to AG_TILE_N channels; y is only written where
 * these are the first elements of the pooling window. NaN is larger than all numbers. */
static inline void ag_pool_max(float *y, uint8_t *index, float (*sums)[AG_TILE_N], const float *bias,
                               const uint8_t *element, int32_t count, int32_t outputs, bool first) {
    for (int32_t j = 0; j < AG_TILE_N && j < outputs; j++) {
        float best = first ? sums[0][j] + bias[j] : y[j];
        uint8_t which = first ? element[0] : index[j];
        for (int32_t i = first ? 1 : 0; i < count; i++) {
            const float sum = sums[i][j] + bias[j];
            if (!(sum <= best) && (best == best || sum != sum)) {
                best = sum;
                which = element[i];
            }
        }
        y[j] = best;
        index[j] = which;
    }
}
#endif

/* A pooling window that needs more than one tile or touches the padding. */
static AG_NOINLINE void ag_pool_window(ag_pool_state *state, const float *x, const float *w,
                                       const float *bias, float *y, uint8_t *index, int32_t p, int32_t q,
                                       const ag_conv2d_group *g, const ag_conv2d_pool_shape *s) {
    const int32_t end = s->pool_h * s->pool_w;
    for (int32_t element = 0, next; element < end; element = next) {
        const float *filters = w;
        next = ag_pool_rows_from(&state->rows, element, p, q, s);
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            state->taps[i] = ag_window_taps_of(state->rows.p[i], state->rows.q[i], s);
        }
        for (int32_t o = 0; o < s->o; o += AG_TILE_N, filters += AG_TILE_N * g->filter) {
            ag_pool_sums(state, x, filters, s->o - o, g);
            AG_POOL_MAX(y + o, index + o, state->sums, bias + o, state->rows.element, state->rows.count,
                        s->o - o, element == 0);
        }
    }
}

/* Interior pooling windows side by side that fit one tile, of state->rows each; the window of the first
 * element starts at x. */
static void ag_pool_interior(ag_pool_state *state, const float *x, const float *w, const float *bias,
                             float *y, uint8_t *index, int32_t windows, const ag_conv2d_group *g) {
    const int32_t row_length = g->s->kw * g->channels;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        state->t.a[i] = x + state->offset[i];
    }
    state->t.c = &state->sums[0][0];
    state->t.beta = 0.0f;
    state->t.k = row_length;
    state->t.k_runs = g->s->kh;
    state->t.a_skip = ag_bytes((ptrdiff_t)g->s->dilation_h * g->s->x_h - row_length);
    state->t.b_skip = 0;
    for (int32_t o = 0; o < g->outputs; o += AG_TILE_N, w += AG_TILE_N * g->filter) {
        ag_pool_filters(&state->t, w, g->outputs - o, g);
        AG_MICROKERNEL(nt)(&state->t);
        AG_POOL_MAX(y + o, index + o, state->sums, bias + o, state->rows.element, state->rows.count,
                    g->outputs - o, true);
        for (int32_t i = 1; i < windows; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * g->outputs + o;
            AG_POOL_MAX(y + at, index + at, state->sums + (ptrdiff_t)i * state->rows.count, bias + o,
                        state->rows.element, state->rows.count, g->outputs - o, true);
        }
    }
}

/* Sets state->rows and offset for windows side by side. Unused rows repeat the last one. */
static void ag_pool_interior_rows(ag_pool_state *state, int32_t windows, const ag_conv2d_pool_shape *s) {
    ag_pool_rows_from(&state->rows, 0, 0, 0, s);
    const int32_t elements = state->rows.count;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        const int32_t row = i < windows * elements ? i : windows * elements - 1;
        const int32_t column = state->rows.q[row % elements] + row / elements * s->pool_stride_w;
        state->offset[i] = (ptrdiff_t)state->rows.p[row % elements] * s->stride_h * s->x_h +
                           (ptrdiff_t)column * s->stride_w * s->x_w;
    }
}

static void ag_conv2d_pool_tiled(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                                 int32_t n, const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape conv = ag_pooled_conv2d(s);
    const ag_conv2d_group g = ag_conv2d_group_of(&conv);
    const int32_t fit = AG_TILE_M / (s->pool_h * s->pool_w); /* windows in a tile */
    const bool one_tile = fit > 0 && ag_taps_contiguous(&g, s->kw);
    ag_pool_state state;
    state.t.alpha = 1.0f;
    ag_one_tile(&state.t);
    state.t.c_step = ag_bytes(AG_TILE_N);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++) {
            const bool inside = one_tile && ag_pool_window_inside_h(p, s);
            int32_t set = 0; /* windows for which the rows of the tile are set */
            for (int32_t q = 0, windows = 1; q < s->pw;
                 q += windows, y += (ptrdiff_t)windows * s->o, index += (ptrdiff_t)windows * s->o) {
                windows = 1;
                if (inside && ag_pool_window_inside_w(q, s)) {
                    const ptrdiff_t row = (ptrdiff_t)p * s->pool_stride_h * s->stride_h - s->pad_top;
                    const ptrdiff_t column = (ptrdiff_t)q * s->pool_stride_w * s->stride_w - s->pad_left;
                    while (windows < fit && q + windows < s->pw && ag_pool_window_inside_w(q + windows, s)) {
                        windows++;
                    }
                    if (set != windows) {
                        ag_pool_interior_rows(&state, windows, s);
                        set = windows;
                    }
                    ag_pool_interior(&state, x + row * s->x_h + column * s->x_w, w, bias, y, index, windows,
                                     &g);
                } else {
                    ag_pool_window(&state, x, w, bias, y, index, p, q, &g, s);
                    set = 0;
                }
            }
        }
    }
}

void AG_SYMBOL(conv2d_pool_f32)(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                                int32_t n, const ag_conv2d_pool_shape *shape) {
    ag_conv2d_pool_tiled(x, w, bias, y, index, n, shape);
}
