/* The gradient of a convolution's weights over blocks: AG_TILE_M output channels against AG_TILE_N elements
 * of a row of the window, summed over the pixels of dy whose windows have all of them inside x. */
#ifndef AG_TILES_CONV2D_DW_H
#define AG_TILES_CONV2D_DW_H

#include "tiles/conv2d_group.h"

/* The windows along an axis that have an element inside: begin ... end - 1. */
typedef struct {
    int32_t begin, end;
} ag_range;

/* Of the element `offset` away from a window's beginning at window * stride. */
static inline ag_range ag_windows_with(int32_t offset, int32_t windows, int32_t stride, int32_t extent) {
    ag_range r;
    r.begin = offset < 0 ? (stride - 1 - offset) / stride : 0;
    r.end = offset >= extent ? 0 : (extent - 1 - offset) / stride + 1;
    r.end = r.end < windows ? r.end : windows;
    return r;
}

/* The columns of a block: elements of a row of the window, each tap's channels after the other's. */
typedef struct {
    ptrdiff_t at[AG_TILE_N]; /* from the beginning of the window's row in x */
    ag_range across[AG_TILE_N], common;
    bool side_by_side, edges; /* in x; some pixels have only a part of them */
} ag_elements;

static ag_elements ag_elements_from(int32_t first, int32_t run, const ag_conv2d_group *g) {
    const ag_conv2d_shape *s = g->s;
    ag_elements e;
    e.side_by_side = true;
    e.edges = false;
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        const int32_t element = first + j < run ? first + j : run - 1;
        const int32_t column = element / g->channels * s->dilation_w - s->pad_left;
        e.at[j] = (ptrdiff_t)column * s->x_w + (ptrdiff_t)(element % g->channels) * s->x_c;
        e.across[j] = ag_windows_with(column, s->ow, s->stride_w, s->w);
        e.side_by_side = e.side_by_side && e.at[j] == e.at[0] + j;
        if (j == 0) {
            e.common = e.across[0];
            continue;
        }
        e.edges = e.edges || e.across[j].begin != e.across[0].begin || e.across[j].end != e.across[0].end;
        if (e.across[j].begin > e.common.begin) {
            e.common.begin = e.across[j].begin;
        }
        if (e.across[j].end < e.common.end) {
            e.common.end = e.across[j].end;
        }
    }
    return e;
}

/* Adds to the sums what pixels outside the common range contribute; x and dy of one image. */
static void ag_dw_edges(float sums[AG_TILE_M][AG_TILE_N], const float *x, const float *dy, int32_t outputs,
                        const ag_elements *e, ag_range down, const ag_conv2d_shape *s) {
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        for (int32_t q = e->across[j].begin; q < e->across[j].end; q++) {
            const float *px = x + down.begin * (ptrdiff_t)s->stride_h * s->x_h + e->at[j];
            const float *pdy = dy + ((ptrdiff_t)down.begin * s->ow + q) * s->ldy;
            if (q >= e->common.begin && q < e->common.end) {
                q = e->common.end - 1;
                continue;
            }
            px += (ptrdiff_t)q * s->stride_w * s->x_w;
            for (int32_t p = down.begin; p < down.end; p++) {
                for (int32_t i = 0; i < outputs; i++) {
                    sums[i][j] += pdy[i] * *px;
                }
                px += (ptrdiff_t)s->stride_h * s->x_h;
                pdy += (ptrdiff_t)s->ow * s->ldy;
            }
        }
    }
}

/* One row of the window, in one group: x and dy at the group's first channels of the first image, dw at the
 * row's weights of its first output channel. */
typedef struct {
    const float *x, *dy;
    float *dw;
    int32_t n;
    ag_range down;
    float alpha, beta;
    const ag_conv2d_group *g;
} ag_dw_row;

/* The sums over the images of AG_TILE_M output channels from `o` on, t being set for the first image. */
static void ag_dw_sums(float sums[AG_TILE_M][AG_TILE_N], ag_tile *t, const ag_dw_row *r, const ag_elements *e,
                       int32_t o) {
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
            (e->side_by_side ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(t);
        }
        if (e->edges) {
            ag_dw_edges(sums, r->x + (ptrdiff_t)image * s->x_n, r->dy + image * dy_image + o, AG_TILE_M, e,
                        r->down, s);
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

/* AG_TILE_N elements from `first` on, or what the row has, for all output channels. The first `back` of them
 * are there already. */
static void ag_dw_columns(const ag_dw_row *r, int32_t first, int32_t back, int32_t run) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    const ag_elements e = ag_elements_from(first, run, g);
    const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w, x_row = (ptrdiff_t)s->stride_h * s->x_h;
    const float *dy = r->dy + ((ptrdiff_t)r->down.begin * s->ow + e.common.begin) * s->ldy;
    const float *x = r->x + r->down.begin * x_row + e.common.begin * x_step;
    float sums[AG_TILE_M][AG_TILE_N], *dw = r->dw + first;
    int32_t o = 0;
    ag_tile t;
    t.k = e.common.end - e.common.begin;
    t.k_runs = r->down.end - r->down.begin;
    t.a_step = ag_bytes(s->ldy);
    t.b_step = ag_bytes(x_step);
    t.a_skip = ag_bytes((ptrdiff_t)(s->ow - t.k) * s->ldy);
    t.b_skip = ag_bytes(x_row - t.k * x_step);
    if (t.a_skip == 0 && t.b_skip == 0) {
        t.k *= t.k_runs;
        t.k_runs = 1;
    }
    for (int32_t j = 0; j < AG_TILE_N; j++) {
        t.b[j] = x + e.at[j];
    }
    if (r->n == 1 && !e.edges && t.k > 0 && t.k_runs > 0 && back == 0 && run >= AG_TILE_N) {
        t.alpha = r->alpha;
        t.beta = r->beta;
        t.c_step = ag_bytes(g->filter);
        t.c = dw;
        for (; o + AG_TILE_M <= g->outputs; o += AG_TILE_M) {
            t.a[0] = dy + o;
            (e.side_by_side ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(tg))(&t);
            t.c += AG_TILE_M * g->filter;
        }
    }
    for (; o < g->outputs; o += AG_TILE_M) {
        const int32_t up = o + AG_TILE_M > g->outputs ? o + AG_TILE_M - g->outputs : 0;
        t.a[0] = dy + o - up;
        ag_dw_sums(sums, &t, r, &e, o - up);
        for (int32_t i = up; i < AG_TILE_M; i++) {
            for (int32_t j = back; j < AG_TILE_N && j < run; j++) {
                float *to = dw + (o - up + i) * g->filter + j;
                *to = r->beta == 0.0f ? r->alpha * sums[i][j] : r->alpha * sums[i][j] + r->beta * *to;
            }
        }
    }
}

/* A row of the window where there are fewer output channels than a block has. */
static void ag_dw_narrow(const ag_dw_row *r, int32_t run) {
    const ag_conv2d_group *g = r->g;
    const ag_conv2d_shape *s = g->s;
    for (int32_t o = 0; o < g->outputs; o++) {
        for (int32_t j = 0; j < run; j++) {
            const int32_t column = j / g->channels * s->dilation_w - s->pad_left;
            const ag_range across = ag_windows_with(column, s->ow, s->stride_w, s->w);
            const ptrdiff_t at = (ptrdiff_t)column * s->x_w + (ptrdiff_t)(j % g->channels) * s->x_c;
            const ptrdiff_t x_step = (ptrdiff_t)s->stride_w * s->x_w;
            float sum = 0.0f, *to = r->dw + o * g->filter + j;
            for (int32_t b = 0; b < r->n; b++) {
                for (int32_t p = r->down.begin; p < r->down.end; p++) {
                    const float *px = r->x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)p * s->stride_h * s->x_h + at;
                    const float *dy = r->dy + ((ptrdiff_t)b * s->oh + p) * s->ow * s->ldy + o;
                    px += across.begin * x_step;
                    dy += (ptrdiff_t)across.begin * s->ldy;
                    for (int32_t q = across.begin; q < across.end; q++, px += x_step, dy += s->ldy) {
                        sum += *px * *dy;
                    }
                }
            }
            *to = r->beta == 0.0f ? r->alpha * sum : r->alpha * sum + r->beta * *to;
        }
    }
}

static void ag_conv2d_dw_tiled(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *s, float alpha, float beta) {
    const ag_conv2d_group g = ag_group_of(s);
    const int32_t run = s->kw * g.channels;
    ag_dw_row r;
    r.n = n;
    r.alpha = alpha;
    r.beta = beta;
    r.g = &g;
    for (int32_t group = 0; group < s->groups; group++) {
        for (int32_t i = 0; i < s->kh; i++) {
            const int32_t offset = i * s->dilation_h - s->pad_top;
            r.down = ag_windows_with(offset, s->oh, s->stride_h, s->h);
            r.x = x + (ptrdiff_t)group * g.channels * s->x_c + (ptrdiff_t)offset * s->x_h;
            r.dy = dy + (ptrdiff_t)group * g.outputs;
            r.dw = dw + (ptrdiff_t)group * g.outputs * g.filter + (ptrdiff_t)i * run;
            if (g.outputs < AG_TILE_M) {
                ag_dw_narrow(&r, run);
                continue;
            }
            for (int32_t j = 0; j < run; j += AG_TILE_N) {
                const int32_t back = run >= AG_TILE_N && j + AG_TILE_N > run ? j + AG_TILE_N - run : 0;
                ag_dw_columns(&r, j - back, back, run);
            }
        }
    }
}

#endif
