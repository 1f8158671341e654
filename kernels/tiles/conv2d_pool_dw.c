/* Weight gradient of a pooled convolution: for every dy != 0, dy times the window that `index` selected is
 * added to the sums of its output channel. The windows that are inside x are listed first, and added
 * together. A window is processed in blocks of at most AG_POOL_SUMS sums, so that they stay on the stack:
 *
 *     window (kh rows)        block: rows x lines x elements
 *     +-----------+
 *     | lines of  |  row      a line is a run of elements with a constant stride in x:
 *     | elements  |           all of a row, the channels of one tap, or one channel of all taps
 *     +-----------+ */
#include "ag_kernels.h"
#include "tiles/conv2d_pool_gradient.h"

#include <string.h>

/* The sums of a list of windows: a backend's own, or those of sum_windows.h. */
#ifndef AG_SUM_WINDOWS
#include "tiles/sum_windows.h"
#define AG_SUM_WINDOWS ag_sum_windows
#endif
/* Sums and windows at a time; a backend may define more. With these, a call takes at most 1 KB of stack. */
#ifndef AG_POOL_LIST
#define AG_POOL_SUMS 96
#define AG_POOL_LIST 53
#endif

/* A row of the window as lines of elements that are `step` apart in x, 1 where possible: the whole row (ALL),
 * one tap (TAP), or one channel of all taps (CHANNEL). */
typedef struct {
    enum { AG_LINE_ALL, AG_LINE_TAP, AG_LINE_CHANNEL } kind;
    int32_t lines, length;
    ptrdiff_t line_step, step;
    int32_t line_weight, weight; /* distances in dw */
} ag_window_lines;

static ag_window_lines ag_window_lines_of(const ag_pool_gradient *g) {
    const ag_conv2d_pool_shape *s = g->s;
    ag_window_lines l;
    if (g->contiguous) {
        l = (ag_window_lines){AG_LINE_ALL, 1, s->kw * s->c, 0, 1, 0, 1};
    } else if (s->x_c == 1) {
        l = (ag_window_lines){AG_LINE_TAP, s->kw, s->c, g->tap_step, 1, s->c, 1};
    } else {
        l = (ag_window_lines){AG_LINE_CHANNEL, s->c, s->kw, s->x_c, g->tap_step, 1, s->c};
    }
    return l;
}

/* A block of the window: first index and count along each axis. */
typedef struct {
    int32_t row, rows, line, lines, element, elements;
} ag_window_block;

/* The size of equal pieces of `count` that are at most `fit`. */
static inline int32_t ag_even_split(int32_t count, int32_t fit) {
    const int32_t pieces = (count + fit - 1) / fit;
    return (count + pieces - 1) / pieces;
}

/* The block size; the last blocks may be smaller. */
static inline ag_window_block ag_block_size(const ag_window_lines *l, int32_t kh) {
    ag_window_block block = {0, 1, 0, 1, 0, l->length};
    if (l->length > AG_POOL_SUMS) {
        block.elements = ag_even_split(l->length, AG_POOL_SUMS);
    } else if (l->lines * l->length > AG_POOL_SUMS) {
        block.lines = ag_even_split(l->lines, AG_POOL_SUMS / l->length);
    } else {
        block.lines = l->lines;
        block.rows = ag_even_split(kh, AG_POOL_SUMS / (l->lines * l->length));
    }
    return block;
}

/* Clips [*first, *first + *count) to [from, from + length). */
static inline void ag_clip(int32_t *first, int32_t *count, int32_t from, int32_t length) {
    const int32_t end = ag_min(*first + *count, from + length);
    *first = *first > from ? *first : from;
    *count = end - *first;
}

/* Adds dy times a block of the window whose corner is at x to the block's sums; elements outside the image
 * are skipped. */
static void ag_pool_dw_add(float *sums, const float *x, float dy, const ag_window_taps *taps,
                           const ag_window_block *block, const ag_window_lines *l,
                           const ag_pool_gradient *g) {
    ag_window_block clipped = *block;
    int32_t skip;
    ag_clip(&clipped.row, &clipped.rows, taps->row, taps->rows);
    if (l->kind == AG_LINE_TAP) {
        ag_clip(&clipped.line, &clipped.lines, taps->column, taps->columns);
    } else {
        const int32_t unit = l->kind == AG_LINE_ALL ? g->s->c : 1;
        ag_clip(&clipped.element, &clipped.elements, taps->column * unit, taps->columns * unit);
    }
    if (clipped.rows <= 0 || clipped.lines <= 0 || clipped.elements <= 0) {
        return;
    }
    x += clipped.row * g->row_step + clipped.line * l->line_step + clipped.element * l->step;
    sums +=
        ((ptrdiff_t)(clipped.row - block->row) * block->lines + clipped.line - block->line) * block->elements;
    sums += clipped.element - block->element;
    skip = ag_bytes(block->elements - clipped.elements);
    if (l->kind == AG_LINE_ALL) {
        ag_axpy_rows(sums, skip, x, ag_bytes(g->row_step - clipped.elements), clipped.rows, clipped.elements,
                     dy);
        return;
    }
    for (; clipped.rows > 0;
         clipped.rows--, x += g->row_step, sums += (ptrdiff_t)block->lines * block->elements) {
        if (l->step == 1) {
            ag_axpy_rows(sums, skip, x, ag_bytes(l->line_step - clipped.elements), clipped.lines,
                         clipped.elements, dy);
            continue;
        }
        for (int32_t i = 0; i < clipped.lines; i++) {
            for (int32_t j = 0; j < clipped.elements; j++) {
                sums[i * block->elements + j] += dy * x[i * l->line_step + j * l->step];
            }
        }
    }
}

/* The sums of a block of the window of one channel, and what is added to them. */
typedef struct {
    union {
        float sums[AG_POOL_SUMS];
        ag_weighted_window list[AG_POOL_LIST]; /* the windows are listed from `first` on, after the sums */
    } mem;
    int32_t first, count;
    const ag_window_block *block;
    const ag_window_lines *lines;
    const ag_pool_gradient *g;
} ag_pool_dw;

static inline void ag_pool_dw_add_listed(ag_pool_dw *d) {
    if (d->count > 0) {
        AG_SUM_WINDOWS(d->mem.sums, d->mem.list + d->first, d->count, d->g->row_step, d->block->rows,
                       d->block->elements);
        d->count = 0;
    }
}

/* Adds `count` interior pixels of a row; dy and index are `channels` apart, and x, the block of the first
 * one's first window, `step`. Which dy are 0 is not predictable, so there is no branch on them. */
static inline void ag_pool_dw_interior(ag_pool_dw *d, const float *x, const float *dy, const uint8_t *index,
                                       int32_t count, int32_t channels, ptrdiff_t step,
                                       const ptrdiff_t *element) {
    while (count > 0) {
        const int32_t room = AG_POOL_LIST - d->first - d->count, fit = ag_min(count, room);
        ag_weighted_window *entry = d->mem.list + d->first + d->count;
        for (int32_t i = fit; i > 0; i--, x += step, dy += channels, index += channels) {
            uint32_t bits;
            memcpy(&bits, dy, sizeof bits);
            memcpy(&entry->dy, &bits, sizeof bits);
            entry->x = x + element[*index];
            entry += bits << 1 != 0; /* a zero of either sign is overwritten */
        }
        count -= fit;
        d->count = (int32_t)(entry - d->mem.list) - d->first;
        if (entry == d->mem.list + AG_POOL_LIST) {
            ag_pool_dw_add_listed(d);
        }
    }
}

/* Adds `count` pooled pixels of row p from q on; dy and index at the channel of the row. */
static void ag_pool_dw_pixels(ag_pool_dw *d, const float *x, const float *dy, const uint8_t *index, int32_t p,
                              int32_t q, int32_t count) {
    const ag_conv2d_pool_shape *s = d->g->s;
    for (; count > 0; count--, q++) {
        const float factor = dy[(ptrdiff_t)q * s->o];
        if (factor != 0.0f) {
            const ag_window_taps taps = ag_selected_window(p, q, index[(ptrdiff_t)q * s->o], s);
            const ptrdiff_t corner = taps.offset - taps.row * d->g->row_step - taps.column * d->g->tap_step;
            ag_pool_dw_add(d->mem.sums, x + corner, factor, &taps, d->block, d->lines, d->g);
        }
    }
}

/* Computes the sums; dy and index at the channel. */
static void ag_pool_dw_sums(ag_pool_dw *d, const float *x, const float *dy, const uint8_t *index, int32_t n) {
    const ag_pool_gradient *g = d->g;
    const ag_conv2d_pool_shape *s = g->s;
    const bool interior = g->tabulated && g->contiguous && g->interior.first < g->interior.last;
    const ptrdiff_t first = (ptrdiff_t)g->interior.first * s->o, row = (ptrdiff_t)s->pw * s->o;
    const ptrdiff_t step = (ptrdiff_t)s->pool_stride_w * s->stride_w * s->x_w;
    const ptrdiff_t x_row = (ptrdiff_t)s->pool_stride_h * s->stride_h * s->x_h;
    const ptrdiff_t corner =
        ag_pool_corner(0, g->interior.first, s) + d->block->row * g->row_step + d->block->element;
    const int32_t sums = d->block->rows * d->block->lines * d->block->elements;
    const int32_t floats = (int32_t)(sizeof(ag_weighted_window) / sizeof(float));
    d->first = (sums + floats - 1) / floats;
    d->count = 0;
    ag_zero_floats(d->mem.sums, sums);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->ph; p++, dy += row, index += row) {
            int32_t q = 0;
            if (interior && p >= g->interior.top && p < g->interior.bottom) {
                ag_pool_dw_interior(d, x + corner + p * x_row, dy + first, index + first,
                                    g->interior.last - g->interior.first, s->o, step, g->element);
                if (g->interior.first > 0) {
                    ag_pool_dw_pixels(d, x, dy, index, p, 0, g->interior.first);
                }
                q = g->interior.last;
            }
            if (q < s->pw) {
                ag_pool_dw_pixels(d, x, dy, index, p, q, s->pw - q);
            }
        }
    }
    ag_pool_dw_add_listed(d);
}

static void ag_pool_dw_store(float *dw, const float *sums, const ag_window_block *block,
                             const ag_window_lines *l, int32_t row, float alpha, float beta) {
    dw += (ptrdiff_t)block->row * row + (ptrdiff_t)block->line * l->line_weight +
          (ptrdiff_t)block->element * l->weight;
    if (l->kind == AG_LINE_ALL && beta == 1.0f) {
        ag_axpy_rows(dw, ag_bytes(row - block->elements), sums, 0, block->rows, block->elements, alpha);
        return;
    }
    for (int32_t i = 0; i < block->rows; i++, dw += row) {
        float *line = dw;
        for (int32_t j = 0; j < block->lines; j++, line += l->line_weight) {
            const float *end = sums + block->elements;
            const int32_t step = l->weight;
            float *dst = line;
            if (beta == 0.0f) {
                for (; sums < end; dst += step) {
                    *dst = alpha * *sums++;
                }
            } else {
                for (; sums < end; dst += step) {
                    *dst = alpha * *sums++ + beta * *dst;
                }
            }
        }
    }
}

void AG_SYMBOL(conv2d_pool_dw_f32)(const float *x, const float *dy, const uint8_t *index, float *dw,
                                   int32_t n, const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    const ag_conv2d_pool_shape *s = shape;
    ag_pool_gradient g;
    ag_window_lines l;
    ag_window_block size, block;
    ag_pool_dw d;
    d.block = &block;
    d.lines = &l;
    d.g = &g;
    ag_pool_gradient_of(&g, s);
    l = ag_window_lines_of(&g);
    size = ag_block_size(&l, s->kh);
    for (int32_t o = 0; o < s->o; o++, dw += g.filter) {
        for (block.row = 0; block.row < s->kh; block.row += size.rows) {
            block.rows = ag_min(size.rows, s->kh - block.row);
            for (block.line = 0; block.line < l.lines; block.line += size.lines) {
                block.lines = ag_min(size.lines, l.lines - block.line);
                for (block.element = 0; block.element < l.length; block.element += size.elements) {
                    block.elements = ag_min(size.elements, l.length - block.element);
                    ag_pool_dw_sums(&d, x, dy + o, index + o, n);
                    ag_pool_dw_store(dw, d.mem.sums, &block, &l, s->kw * s->c, alpha, beta);
                }
            }
        }
    }
}
