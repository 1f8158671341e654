/* Weight gradient of a pooled convolution: for every dy != 0, dy times the window that `index` selected is
 * added to the sums of its output channel. The windows that are inside x are listed first, and added
 * together. A window is processed in blocks of at most AG_POOL_SUMS sums, so that they stay on the stack:
 *
 *     window (kh rows)        block: rows x elements, all of a row where they fit
 *     +-----------+
 *     | elements  |  row      an element is a channel of a tap
 *     | elements  |
 *     +-----------+ */
#include "ag_kernels.h"
#include "tiles/conv2d_pool_gradient.h"

#include <string.h>

/* The sums of a list of windows: a backend's function, or the one in sum_windows.h. */
#ifndef AG_SUM_WINDOWS
#include "tiles/sum_windows.h"
#define AG_SUM_WINDOWS ag_sum_windows
#endif
/* A block of the window: first index and count along each axis. */
typedef struct {
    int32_t row, rows, element, elements;
} ag_window_block;

/* The size of equal pieces of `count` that are at most `fit`. */
static inline int32_t ag_even_split(int32_t count, int32_t fit) {
    const int32_t pieces = (count + fit - 1) / fit;
    return (count + pieces - 1) / pieces;
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
                           const ag_window_block *block, const ag_pool_gradient *g) {
    const int32_t channels = g->s->c;
    ag_window_block clipped = *block;
    ag_clip(&clipped.row, &clipped.rows, taps->row, taps->rows);
    ag_clip(&clipped.element, &clipped.elements, taps->column * channels, taps->columns * channels);
    if (clipped.rows <= 0 || clipped.elements <= 0) {
        return;
    }
    x += clipped.row * g->row_step;
    sums += (ptrdiff_t)(clipped.row - block->row) * block->elements + clipped.element - block->element;
    if (g->contiguous) {
        ag_axpy_rows(sums, ag_bytes(block->elements - clipped.elements), x + clipped.element,
                     ag_bytes(g->row_step - clipped.elements), clipped.rows, clipped.elements, dy);
        return;
    }
    for (int32_t i = 0; i < clipped.rows; i++, x += g->row_step, sums += block->elements) {
        int32_t channel = clipped.element % channels;
        const float *tap = x + clipped.element / channels * g->tap_step;
        for (int32_t j = 0; j < clipped.elements; j++) {
            sums[j] += dy * tap[(ptrdiff_t)channel * g->s->x_c];
            if (++channel == channels) {
                channel = 0;
                tap += g->tap_step;
            }
        }
    }
}

/* The sums of a block of the window of one channel, and the windows that are added to them. */
typedef struct {
    union {
        float sums[AG_POOL_SUMS];
        ag_weighted_window list[AG_POOL_LIST]; /* the windows are listed from `first` on, after the sums */
    } mem;
    int32_t first, count;
    const ag_window_block *block;
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
        if (AG_POOL_LIST - d->first - d->count < count) {
            ag_pool_dw_add_listed(d);
        }
        const int32_t fit = ag_min(count, AG_POOL_LIST - d->first - d->count);
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
            ag_pool_dw_add(d->mem.sums, x + corner, factor, &taps, d->block, d->g);
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
    const int32_t sums = d->block->rows * d->block->elements;
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

void AG_SYMBOL(conv2d_pool_dw_f32)(const float *x, const float *dy, const uint8_t *index, float *dw,
                                   int32_t n, const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t row_length = s->kw * s->c;
    const int32_t rows = row_length <= AG_POOL_SUMS ? ag_even_split(s->kh, AG_POOL_SUMS / row_length) : 1;
    const int32_t elements = ag_even_split(row_length, AG_POOL_SUMS); /* the last blocks may be smaller */
    ag_pool_gradient g;
    ag_window_block block;
    ag_pool_dw d;
    d.block = &block;
    d.g = &g;
    ag_pool_gradient_of(&g, s);
    for (int32_t o = 0; o < s->o; o++) {
        for (block.row = 0; block.row < s->kh; block.row += rows) {
            block.rows = ag_min(rows, s->kh - block.row);
            for (block.element = 0; block.element < row_length; block.element += elements) {
                block.elements = ag_min(elements, row_length - block.element);
                ag_pool_dw_sums(&d, x, dy + o, index + o, n);
                AG_SYMBOL(axpby_f32)(d.mem.sums, dw, block.rows * block.elements, alpha, beta);
                dw += (ptrdiff_t)block.rows * block.elements; /* blocks of parts of a row have one row */
            }
        }
    }
}
