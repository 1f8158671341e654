/* Convolution and pooling by maximum over blocks: AG_TILE_M pixels of one window of the pooling against
 * AG_TILE_N output channels; of these sums only the largest are stored. */
#ifndef AG_TILES_CONV2D_POOL_H
#define AG_TILES_CONV2D_POOL_H

#include "tiles/im2col.h"
#include "tiles/conv2d_pool_windows.h"

/* The convolution that is pooled. */
static inline ag_conv2d_shape ag_pooled_conv2d(const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape conv = {s->h,       s->w,        s->c,          s->oh,         s->ow,
                                  s->o,       s->kh,       s->kw,         s->stride_h,   s->stride_w,
                                  s->pad_top, s->pad_left, s->dilation_h, s->dilation_w, 1,
                                  s->x_n,     s->x_h,      s->x_w,        s->x_c,        s->o};
    return conv;
}

static inline bool ag_alike(const ag_inside *a, const ag_inside *b) {
    return a->row == b->row && a->rows == b->rows && a->column == b->column && a->columns == b->columns;
}

/* The rows of a block: pixels of the convolution, and which elements of the pooling's window they are. */
typedef struct {
    int32_t p[AG_TILE_M], q[AG_TILE_M];
    uint8_t element[AG_TILE_M];
    int32_t count;
} ag_pool_rows;

/* The next elements of the pooling's window (p, q), from the given one on, that the convolution has; what is
 * left of the block repeats the last. Returns where to go on. */
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

/* The weights of up to AG_TILE_N output channels; what is left of the block repeats the last. */
static inline void ag_pool_filters(ag_tile *t, const float *w, int32_t outputs, const ag_conv2d_group *g) {
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t->b[j] = w;
        w += j + 1 < outputs ? g->filter : 0;
    }
}

/* Blocks that find the largest of windows of the pooling. */
typedef struct {
    ag_tile t;
    float sums[AG_TILE_M][AG_TILE_N], some[AG_TILE_M][AG_TILE_N];
    ag_pool_rows rows;
    ptrdiff_t at[AG_TILE_M]; /* from the first row's window of the convolution to each row's */
} ag_pool_block;

/* t->c = the sums of the windows at t->a, whose taps inside x are those of `in`. */
static void ag_pool_tile(ag_tile *t, const ag_inside *in, const float *w, int32_t outputs,
                         const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    const int32_t run = in->columns * g->channels;
    w += in->row * w_row + (ptrdiff_t)in->column * g->channels;
    ag_pool_filters(t, w, outputs, g);
    t->k = run;
    t->k_runs = in->rows;
    t->a_skip = ag_bytes((ptrdiff_t)g->s->dilation_h * g->s->x_h - run);
    t->b_skip = ag_bytes(w_row - run);
    t->beta = 0.0f;
    AG_MICROKERNEL(nt)(t);
}

/* The same where the taps do not follow one another. */
static AG_NOINLINE void ag_pool_packed(ag_tile *t, const ag_inside *in, const float *w, int32_t outputs,
                                       const ag_conv2d_group *g) {
    const ptrdiff_t w_row = (ptrdiff_t)g->s->kw * g->channels;
    float packed[AG_TILE_M][AG_PACKED];
    ptrdiff_t offsets[AG_PACKED];
    const float *x[AG_TILE_M];
    ag_parts part = ag_parts_of(in->rows, in->columns * g->channels);
    w += in->row * w_row + (ptrdiff_t)in->column * g->channels;
    t->a_skip = 0;
    t->beta = 0.0f;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        x[i] = t->a[i];
        t->a[i] = packed[i];
    }
    while (ag_next_part(&part)) {
        ag_pack_from(offsets, &part, g);
        ag_pack(packed, x, offsets, part.taken * part.length);
        ag_pool_filters(t, w + part.row * w_row + part.from, outputs, g);
        t->k = part.length;
        t->k_runs = part.taken;
        t->b_skip = ag_bytes(w_row - part.length);
        AG_MICROKERNEL(nt)(t);
        t->beta = 1.0f;
    }
}

/* b->sums of b->rows: of those that have the same taps inside x at once. */
static void ag_pool_sums(ag_pool_block *b, const float *x, const float *w, int32_t outputs,
                         const ag_conv2d_group *g, const ag_conv2d_pool_shape *s) {
    bool done[AG_TILE_M] = {false}, now[AG_TILE_M];
    b->t.c = &b->some[0][0];
    for (int32_t first = 0; first < b->rows.count; first++) {
        const ag_inside in = ag_inside_of(b->rows.p[first], b->rows.q[first], s);
        if (done[first]) {
            continue;
        }
        for (int32_t i = 0; i < AG_TILE_M; i++) {
            const ag_inside other = ag_inside_of(b->rows.p[i], b->rows.q[i], s);
            now[i] = i >= first && i < b->rows.count && ag_alike(&in, &other);
            b->t.a[i] = x + (now[i] ? other.at : in.at);
            for (int32_t j = 0; j < AG_TILE_N; j++) {
                b->some[i][j] = 0.0f;
            }
        }
        if (in.rows > 0 && in.columns > 0) {
            (ag_taps_follow(g, in.columns) ? ag_pool_tile : ag_pool_packed)(&b->t, &in, w, outputs, g);
        }
        for (int32_t i = first; i < AG_TILE_M; i++) {
            for (int32_t j = 0; now[i] && j < AG_TILE_N; j++) {
                b->sums[i][j] = b->some[i][j];
            }
            done[i] = done[i] || now[i];
        }
    }
}

#ifndef AG_POOL_LARGEST
#define AG_POOL_LARGEST ag_pool_largest
/* The larger ones of up to AG_TILE_N channels' y and `count` rows of sums, which are elements of the
 * pooling's window, the first of it or not. */
static inline void ag_pool_largest(float *y, uint8_t *index, float (*sums)[AG_TILE_N], const float *bias,
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

/* A window of the pooling whose elements make more than one block, or which touches the padding. */
static AG_NOINLINE void ag_pool_window(ag_pool_block *b, const float *x, const float *w, const float *bias,
                                       float *y, uint8_t *index, int32_t p, int32_t q,
                                       const ag_conv2d_group *g, const ag_conv2d_pool_shape *s) {
    for (int32_t o = 0; o < s->o; o += AG_TILE_N, w += AG_TILE_N * g->filter) {
        const int32_t end = s->pool_h * s->pool_w;
        for (int32_t element = 0, next; element < end; element = next) {
            next = ag_pool_rows_from(&b->rows, element, p, q, s);
            ag_pool_sums(b, x, w, s->o - o, g, s);
            AG_POOL_LARGEST(y + o, index + o, b->sums, bias + o, b->rows.element, b->rows.count, s->o - o,
                            element == 0);
        }
    }
}

/* A window of the pooling whose elements make one block, b->rows; its first convolution begins at x. */
static void ag_pool_inner(ag_pool_block *b, const float *x, const float *w, const float *bias, float *y,
                          uint8_t *index, const ag_conv2d_group *g) {
    const int32_t run = g->s->kw * g->channels;
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        b->t.a[i] = x + b->at[i];
    }
    b->t.c = &b->sums[0][0];
    b->t.beta = 0.0f;
    b->t.k = run;
    b->t.k_runs = g->s->kh;
    b->t.a_skip = ag_bytes((ptrdiff_t)g->s->dilation_h * g->s->x_h - run);
    b->t.b_skip = 0;
    for (int32_t o = 0; o < g->outputs; o += AG_TILE_N, w += AG_TILE_N * g->filter) {
        ag_pool_filters(&b->t, w, g->outputs - o, g);
        AG_MICROKERNEL(nt)(&b->t);
        AG_POOL_LARGEST(y + o, index + o, b->sums, bias + o, b->rows.element, b->rows.count, g->outputs - o,
                        true);
    }
}

static void ag_conv2d_pool_tiled(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                                 int32_t n, const ag_conv2d_pool_shape *s) {
    const ag_conv2d_shape conv = ag_pooled_conv2d(s);
    const ag_conv2d_group g = ag_group_of(&conv);
    const bool block = s->pool_h * s->pool_w <= AG_TILE_M && ag_taps_follow(&g, s->kw);
    ag_pool_block b;
    b.t.alpha = 1.0f;
    b.t.c_step = ag_bytes(AG_TILE_N);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++) {
            const bool inside = block && ag_pool_inside_h(p, s);
            bool set = false;
            for (int32_t q = 0; q < s->pw; q++, y += s->o, index += s->o) {
                if (inside && ag_pool_inside_w(q, s)) {
                    const ptrdiff_t row = (ptrdiff_t)p * s->pool_stride_h * s->stride_h - s->pad_top;
                    const ptrdiff_t column = (ptrdiff_t)q * s->pool_stride_w * s->stride_w - s->pad_left;
                    if (!set) {
                        ag_pool_rows_from(&b.rows, 0, 0, 0, s);
                        for (int32_t i = 0; i < AG_TILE_M; i++) {
                            b.at[i] = (ptrdiff_t)b.rows.p[i] * s->stride_h * s->x_h +
                                      (ptrdiff_t)b.rows.q[i] * s->stride_w * s->x_w;
                        }
                        set = true;
                    }
                    ag_pool_inner(&b, x + row * s->x_h + column * s->x_w, w, bias, y, index, &g);
                } else {
                    ag_pool_window(&b, x, w, bias, y, index, p, q, &g, s);
                    set = false;
                }
            }
        }
    }
}

#endif
