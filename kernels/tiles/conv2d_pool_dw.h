/* The gradient of a pooled convolution's weights: for every element of dy that is not 0, dy times the window
 * that was chosen added to the sums of its channel, a part of the window at a time. The backend's rows.h
 * comes first. */
#ifndef AG_TILES_CONV2D_POOL_DW_H
#define AG_TILES_CONV2D_POOL_DW_H

#include "tiles/conv2d_pool_gradient.h"

enum { AG_POOL_SUMS = 64 };

/* A row of the window in lines of elements that are `step` apart in x, 1 where possible: all of it (ALL), a
 * tap (TAP), or a channel of all taps (CHANNEL). */
typedef struct {
    enum { AG_LINE_ALL, AG_LINE_TAP, AG_LINE_CHANNEL } kind;
    int32_t lines, length;
    ptrdiff_t line_step, step;
    int32_t line_weight, weight; /* distances in dw */
} ag_lines;

static ag_lines ag_lines_of(const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    ag_lines l;
    if (g->follow) {
        l = (ag_lines){AG_LINE_ALL, 1, s->kw * s->c, 0, 1, 0, 1};
    } else if (s->x_c == 1) {
        l = (ag_lines){AG_LINE_TAP, s->kw, s->c, g->tap_step, 1, s->c, 1};
    } else {
        l = (ag_lines){AG_LINE_CHANNEL, s->c, s->kw, s->x_c, g->tap_step, 1, s->c};
    }
    return l;
}

/* A part of the window: how many elements of each axis, and from which on. */
typedef struct {
    int32_t row, rows, line, lines, element, elements;
} ag_window_part;

static inline int32_t ag_smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

/* As many as fit at once, so that all turns are about alike. */
static inline int32_t ag_at_once(int32_t count, int32_t fit) {
    const int32_t turns = (count + fit - 1) / fit;
    return (count + turns - 1) / turns;
}

/* The sizes of the parts, all but the last ones. */
static inline ag_window_part ag_part_of(const ag_lines *l, int32_t kh) {
    ag_window_part part = {0, 1, 0, 1, 0, l->length};
    if (l->length > AG_POOL_SUMS) {
        part.elements = ag_at_once(l->length, AG_POOL_SUMS);
    } else if (l->lines * l->length > AG_POOL_SUMS) {
        part.lines = ag_at_once(l->lines, AG_POOL_SUMS / l->length);
    } else {
        part.lines = l->lines;
        part.rows = ag_at_once(kh, AG_POOL_SUMS / (l->lines * l->length));
    }
    return part;
}

/* [*first, *first + *count) as far as it lies in [from, from + length). */
static inline void ag_clip(int32_t *first, int32_t *count, int32_t from, int32_t length) {
    const int32_t end = ag_smaller(*first + *count, from + length);
    *first = *first > from ? *first : from;
    *count = end - *first;
}

/* dy times a part of the window whose corner would be at x, added to the part's sums; what is outside the
 * image is left out. */
static void ag_pool_dw_add(float *sums, const float *x, float dy, const ag_inside *in,
                           const ag_window_part *part, const ag_lines *l, const ag_pool_gradient *g) {
    ag_window_part now = *part;
    int32_t skip;
    ag_clip(&now.row, &now.rows, in->row, in->rows);
    if (l->kind == AG_LINE_TAP) {
        ag_clip(&now.line, &now.lines, in->column, in->columns);
    } else {
        const int32_t unit = l->kind == AG_LINE_ALL ? g->s->c : 1;
        ag_clip(&now.element, &now.elements, in->column * unit, in->columns * unit);
    }
    if (now.rows <= 0 || now.lines <= 0 || now.elements <= 0) {
        return;
    }
    x += now.row * g->row_step + now.line * l->line_step + now.element * l->step;
    sums += ((ptrdiff_t)(now.row - part->row) * part->lines + now.line - part->line) * part->elements;
    sums += now.element - part->element;
    skip = ag_bytes(part->elements - now.elements);
    if (l->kind == AG_LINE_ALL) {
        ag_axpy_rows(sums, skip, x, ag_bytes(g->row_step - now.elements), now.rows, now.elements, dy);
        return;
    }
    for (; now.rows > 0; now.rows--, x += g->row_step, sums += (ptrdiff_t)part->lines * part->elements) {
        if (l->step == 1) {
            ag_axpy_rows(sums, skip, x, ag_bytes(l->line_step - now.elements), now.lines, now.elements, dy);
            continue;
        }
        for (int32_t i = 0; i < now.lines; i++) {
            for (int32_t j = 0; j < now.elements; j++) {
                sums[i * part->elements + j] += dy * x[i * l->line_step + j * l->step];
            }
        }
    }
}

#ifndef AG_DW_RUN
#define AG_DW_RUN ag_dw_run
/* sums += dy times `rows` rows of `run` elements at x + element[index], one after the other in the sums, for
 * `count` pixels: dy and index are `channels` apart, x is `step` apart. */
static inline void ag_dw_run(float *sums, const float *x, const float *dy, const uint8_t *index,
                             int32_t count, int32_t channels, ptrdiff_t step, const ptrdiff_t *element,
                             ptrdiff_t row_step, int32_t rows, int32_t run) {
    for (; count > 0; count--, x += step, dy += channels, index += channels) {
        if (*dy != 0.0f) {
            ag_axpy_rows(sums, 0, x + element[*index], ag_bytes(row_step - run), rows, run, *dy);
        }
    }
}
#endif

/* The sums of a part of the window of one channel over `count` pooled pixels of row p, from q on; dy and
 * index at that channel of the row. */
static void ag_pool_dw_pixels(float *sums, const float *x, const float *dy, const uint8_t *index, int32_t p,
                              int32_t q, int32_t count, const ag_window_part *part, const ag_lines *l,
                              const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    for (; count > 0; count--, q++) {
        const float by = dy[(ptrdiff_t)q * s->o];
        if (by != 0.0f) {
            const ag_inside in = ag_named_window(p, q, index[(ptrdiff_t)q * s->o], s);
            const ptrdiff_t corner = in.at - in.row * g->row_step - in.column * g->tap_step;
            ag_pool_dw_add(sums, x + corner, by, &in, part, l, g);
        }
    }
}

/* The sums of a part of the window of one channel, dy and index at that channel. */
static void ag_pool_dw_sums(float *sums, const float *x, const float *dy, const uint8_t *index, int32_t n,
                            const ag_window_part *part, const ag_lines *l, const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    const bool fast = g->small && g->follow && g->first < g->last;
    const ptrdiff_t first = (ptrdiff_t)g->first * s->o, row = (ptrdiff_t)s->pw * s->o;
    const ptrdiff_t corner = ag_pool_corner(0, g->first, s) + part->row * g->row_step + part->element;
    const ptrdiff_t step = (ptrdiff_t)s->pool_stride_w * s->stride_w * s->x_w;
    const ptrdiff_t x_row = (ptrdiff_t)s->pool_stride_h * s->stride_h * s->x_h;
    ag_zero_floats(sums, part->rows * part->lines * part->elements);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++, dy += row, index += row) {
            int32_t q = 0;
            if (fast && p >= g->top && p < g->bottom) {
                AG_DW_RUN(sums, x + corner + p * x_row, dy + first, index + first, g->last - g->first, s->o,
                          step, g->element, g->row_step, part->rows, part->elements);
                if (g->first > 0) {
                    ag_pool_dw_pixels(sums, x, dy, index, p, 0, g->first, part, l, g);
                }
                q = g->last;
            }
            if (q < s->pw) {
                ag_pool_dw_pixels(sums, x, dy, index, p, q, s->pw - q, part, l, g);
            }
        }
    }
}

static void ag_pool_dw_store(float *dw, const float *sums, const ag_window_part *part, const ag_lines *l,
                             int32_t row, float alpha, float beta) {
    dw += (ptrdiff_t)part->row * row + (ptrdiff_t)part->line * l->line_weight +
          (ptrdiff_t)part->element * l->weight;
    if (l->kind == AG_LINE_ALL && beta == 1.0f) {
        ag_axpy_rows(dw, ag_bytes(row - part->elements), sums, 0, part->rows, part->elements, alpha);
        return;
    }
    for (int32_t i = 0; i < part->rows; i++, dw += row) {
        float *line = dw;
        for (int32_t j = 0; j < part->lines; j++, line += l->line_weight) {
            const float *end = sums + part->elements;
            const int32_t step = l->weight;
            float *to = line;
            if (beta == 0.0f) {
                for (; sums < end; to += step) {
                    *to = alpha * *sums++;
                }
            } else {
                for (; sums < end; to += step) {
                    *to = alpha * *sums++ + beta * *to;
                }
            }
        }
    }
}

static void ag_conv2d_pool_dw_by_rows(const float *x, const float *dy, const uint8_t *index, float *dw,
                                      int32_t n, const ag_conv2d_pool_shape *s, float alpha, float beta) {
    ag_pool_gradient g;
    ag_lines l;
    ag_window_part most, part;
    float sums[AG_POOL_SUMS];
    ag_pool_gradient_of(&g, s);
    l = ag_lines_of(&g);
    most = ag_part_of(&l, s->kh);
    for (int32_t o = 0; o < s->o; o++, dw += g.filter) {
        for (part.row = 0; part.row < s->kh; part.row += most.rows) {
            part.rows = ag_smaller(most.rows, s->kh - part.row);
            for (part.line = 0; part.line < l.lines; part.line += most.lines) {
                part.lines = ag_smaller(most.lines, l.lines - part.line);
                for (part.element = 0; part.element < l.length; part.element += most.elements) {
                    part.elements = ag_smaller(most.elements, l.length - part.element);
                    ag_pool_dw_sums(sums, x, dy + o, index + o, n, &part, &l, &g);
                    ag_pool_dw_store(dw, sums, &part, &l, s->kw * s->c, alpha, beta);
                }
            }
        }
    }
}

#endif
