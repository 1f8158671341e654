/* Convolution fused with max pooling. Forward: a tile of pooled pixels at a time, one element of their
 * pooling windows after the other. Backward: only the windows that index selects, and only where dy != 0. */
#include "ag_kernels.h"
#include "window_sums.h"

#include <string.h>

static inline bool rows_are_contiguous(const ag_conv2d_pool_shape *s) {
    return s->dilation_w == 1 && s->x_w == s->c && (s->c == 1 || s->x_c == 1);
}

typedef struct {
    const ag_conv2d_pool_shape *s;
    bool contiguous; /* a row of a window is contiguous in x */
    int32_t offset[TAPS];
    float w[TAPS * LANES];
} packed_filter;

static void pack_filter(packed_filter *t, const float *w, int32_t outputs) {
    const ag_conv2d_pool_shape *s = t->s;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    float *dst = t->w;
    int32_t *offset = t->offset;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            for (int32_t k = 0; k < s->c; k++, w++, dst += LANES) {
                *offset++ = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w + k * s->x_c;
                for (int32_t o = 0; o < LANES; o++) {
                    dst[o] = o < outputs ? w[o * filter] : 0.0f;
                }
            }
        }
    }
}

/* A pooled pixel: where its first window starts in x, as row, column and pointer. */
typedef struct {
    const float *x;
    int32_t top, left;
    float *y;
    uint8_t *index;
    int32_t rows, columns; /* of its pooling window that are inside the convolution's result */
} pooled_pixel;

/* The convolution at element (row, column) of the pooling windows of `pixels` pooled pixels. */
ALWAYS_INLINE void conv_at(int32_t pixels, const packed_filter *t, const pooled_pixel *p, int32_t row,
                           int32_t column, int32_t outputs, vec *sum) {
    const ag_conv2d_pool_shape *s = t->s;
    const int32_t width = s->kw * s->c, row_offset = row * s->stride_h, column_offset = column * s->stride_w;
    const int32_t high = (s->kh - 1) * s->dilation_h, wide = (s->kw - 1) * s->dilation_w;
    const float *src[PIXELS];
    bool inside = true;
    for (int32_t u = 0; u < pixels; u++) {
        const int32_t top = p[u].top + row_offset, left = p[u].left + column_offset;
        inside = inside && top >= 0 && left >= 0 && top + high < s->h && left + wide < s->w;
        src[u] = p[u].x + (ptrdiff_t)row_offset * s->x_h + (ptrdiff_t)column_offset * s->x_w;
        sum[u] = zero();
    }
    if (inside && t->contiguous && pixels == PIXELS) {
        const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
        if (outputs <= HALF_LANES) {
            accumulate_contiguous_half(sum, src, row_step, t->w, s->kh, width);
        } else {
            accumulate_contiguous(sum, src, row_step, t->w, s->kh, width);
        }
        return;
    }
    if (inside) {
        accumulate_windows(pixels, sum, src, t->offset, t->w, s->kh * width);
        return;
    }
    for (int32_t u = 0; u < pixels; u++) {
        const int32_t top = p[u].top + row_offset, left = p[u].left + column_offset;
        const int32_t i1 = end_valid_tap(top, s->kh, s->dilation_h, s->h);
        const int32_t j0 = first_valid_tap(left, s->dilation_w);
        const int32_t j1 = end_valid_tap(left, s->kw, s->dilation_w, s->w);
        for (int32_t i = first_valid_tap(top, s->dilation_h); i < i1; i++) {
            const int32_t first = i * width + j0 * s->c;
            accumulate_windows(1, sum + u, src + u, t->offset + first, t->w + (ptrdiff_t)first * LANES,
                               (j1 > j0 ? j1 - j0 : 0) * s->c);
        }
    }
}

ALWAYS_INLINE vec select_lanes(vec_s32 mask, vec a, vec b) {
    return (vec)((mask & (vec_s32)a) | (~mask & (vec_s32)b));
}

/* y and index of `pixels` pooled pixels whose pooling windows have the same number of rows and columns. */
ALWAYS_INLINE void pool_tile(int32_t pixels, const packed_filter *t, const pooled_pixel *p, vec bias,
                             int32_t outputs) {
    const ag_conv2d_pool_shape *s = t->s;
    vec best[PIXELS], sum[PIXELS];
    vec_s32 best_element[PIXELS];
    conv_at(pixels, t, p, 0, 0, outputs, sum);
    for (int32_t u = 0; u < pixels; u++) {
        best[u] = sum[u] + bias;
        best_element[u] = (vec_s32){0};
    }
    for (int32_t e = 1; e < p->rows * p->columns; e++) {
        const int32_t row = e / p->columns, column = e % p->columns, element = row * s->pool_w + column;
        conv_at(pixels, t, p, row, column, outputs, sum);
        for (int32_t u = 0; u < pixels; u++) {
            const vec found = sum[u] + bias;
            const vec_s32 larger = (found > best[u]) | (found != found);
            best[u] = select_lanes(larger, found, best[u]);
            best_element[u] = (larger & element) | (~larger & best_element[u]);
        }
    }
    for (int32_t u = 0; u < pixels; u++) {
        store_partial(p[u].y, best[u], outputs);
        store_bytes(p[u].index, best_element[u], outputs);
    }
}

void ag_conv2d_pool_f32_host(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                             int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t filter = s->kh * s->kw * s->c, image = s->ph * s->pw;
    packed_filter t;
    pooled_pixel p[PIXELS];
    t.s = s;
    t.contiguous = rows_are_contiguous(s);
    for (int32_t o = 0; o < s->o; o += LANES) {
        const int32_t outputs = s->o - o < LANES ? s->o - o : LANES;
        const vec add = load_partial(bias + o, outputs);
        int32_t tile_count = 0;
        pack_filter(&t, w + (ptrdiff_t)o * filter, outputs);
        for (int32_t e = 0, b = 0, i = 0, j = 0; e < n * image; e++) {
            const int32_t row = i * s->pool_stride_h, column = j * s->pool_stride_w;
            pooled_pixel *pixel = p + tile_count;
            pixel->top = row * s->stride_h - s->pad_top;
            pixel->left = column * s->stride_w - s->pad_left;
            pixel->x =
                x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)pixel->top * s->x_h + (ptrdiff_t)pixel->left * s->x_w;
            if (++j == s->pw) {
                j = 0;
                b += ++i == s->ph;
                i = i == s->ph ? 0 : i;
            }
            pixel->y = y + (ptrdiff_t)e * s->o + o;
            pixel->index = index + (ptrdiff_t)e * s->o + o;
            pixel->rows = s->oh - row < s->pool_h ? s->oh - row : s->pool_h;
            pixel->columns = s->ow - column < s->pool_w ? s->ow - column : s->pool_w;
            if (pixel->rows < s->pool_h || pixel->columns < s->pool_w) {
                pool_tile(1, &t, pixel, add, outputs);
            } else if (++tile_count == PIXELS) {
                pool_tile(PIXELS, &t, p, add, outputs);
                tile_count = 0;
            }
        }
        for (int32_t u = 0; u < tile_count; u++) {
            pool_tile(1, &t, p + u, add, outputs);
        }
    }
}

/* The window of the convolution that was the maximum of its pooling window: its corner and its valid taps. */
typedef struct {
    int32_t top, left, i0, i1, j0, j1;
} selected_window;

static inline void corner_of(int32_t p, int32_t q, int32_t element, const ag_conv2d_pool_shape *s,
                             int32_t *top, int32_t *left) {
    const int32_t row =
        s->pool_h <= 2 ? element >= s->pool_w : element / s->pool_w; /* no division in the common case */
    *top = (p * s->pool_stride_h + row) * s->stride_h - s->pad_top;
    *left = (q * s->pool_stride_w + element - row * s->pool_w) * s->stride_w - s->pad_left;
}

static inline selected_window selected_window_of(int32_t p, int32_t q, int32_t element,
                                                 const ag_conv2d_pool_shape *s) {
    selected_window window;
    corner_of(p, q, element, s, &window.top, &window.left);
    window.i0 = first_valid_tap(window.top, s->dilation_h);
    window.i1 = end_valid_tap(window.top, s->kh, s->dilation_h, s->h);
    window.j0 = first_valid_tap(window.left, s->dilation_w);
    window.j1 = end_valid_tap(window.left, s->kw, s->dilation_w, s->w);
    return window;
}

/* dst[length] += the sum over `count` channels of dy * w, with the weights of a channel `filter` apart. */
static void add_row(float *dst, const float *w, ptrdiff_t filter, const float *dy, const uint8_t *channel,
                    int32_t count, int32_t length) {
    int32_t k = 0;
    for (; k + LANES < length; k += 2 * LANES) {
        const int32_t rest = length - k - LANES < LANES ? length - k - LANES : LANES;
        vec low = load(dst + k), high = load_partial(dst + k + LANES, rest);
        for (int32_t e = 0; e < count; e++) {
            const float *src = w + channel[e] * filter + k;
            const vec factor = splat(dy[channel[e]]);
            low += factor * load(src);
            high += factor * load_partial(src + LANES, rest);
        }
        store(dst + k, low);
        store_partial(dst + k + LANES, high, rest);
    }
    if (k < length) {
        vec sum = load_partial(dst + k, length - k);
        for (int32_t e = 0; e < count; e++) {
            sum += splat(dy[channel[e]]) * load_partial(w + channel[e] * filter + k, length - k);
        }
        store_partial(dst + k, sum, length - k);
    }
}

/* The same for `rows` rows at once, dst_next and w_next elements apart; LANES < length <= 2 LANES. */
ALWAYS_INLINE void add_row_block(int32_t rows, float *dst, ptrdiff_t dst_next, const float *w,
                                 ptrdiff_t w_next, ptrdiff_t filter, const float *dy, const uint8_t *channel,
                                 int32_t count, int32_t length) {
    const int32_t rest = length - LANES;
    vec low[5], high[5];
    for (int32_t i = 0; i < rows; i++) {
        low[i] = load(dst + i * dst_next);
        high[i] = load_partial(dst + i * dst_next + LANES, rest);
    }
    for (int32_t e = 0; e < count; e++) {
        const float *src = w + channel[e] * filter;
        const vec factor = splat(dy[channel[e]]);
        for (int32_t i = 0; i < rows; i++) {
            low[i] += factor * load(src + i * w_next);
            high[i] += factor * load_partial(src + i * w_next + LANES, rest);
        }
    }
    for (int32_t i = 0; i < rows; i++) {
        store(dst + i * dst_next, low[i]);
        store_partial(dst + i * dst_next + LANES, high[i], rest);
    }
}

enum { CHANNEL_BLOCK = 64, MAX_POOL = 256 };

/* The channels of one pooled pixel, grouped by the element that was the maximum. */
typedef struct {
    int32_t count[MAX_POOL];
    uint8_t channel[MAX_POOL][CHANNEL_BLOCK];
} channel_groups;

static void add_channel_groups(const channel_groups *groups, const float *dy, const float *w, float *dx,
                               int32_t p, int32_t q, const ag_conv2d_pool_shape *s) {
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    for (int32_t element = 0; element < s->pool_h * s->pool_w; element++) {
        const int32_t count = groups->count[element];
        if (count == 0) {
            continue;
        }
        const selected_window window = selected_window_of(p, q, element, s);
        const uint8_t *channel = groups->channel[element];
        const int32_t length = (window.j1 - window.j0) * s->c;
        int32_t i = window.i0;
        if (s->dilation_w == 1 && s->x_w == s->c && length > LANES && length <= 2 * LANES) {
            const ptrdiff_t dst_next = (ptrdiff_t)s->dilation_h * s->x_h, w_next = (ptrdiff_t)s->kw * s->c;
            float *dst = dx + (ptrdiff_t)window.top * s->x_h + (ptrdiff_t)(window.left + window.j0) * s->x_w;
            const float *src = w + (ptrdiff_t)window.j0 * s->c;
            for (; i + 5 <= window.i1; i += 5) {
                add_row_block(5, dst + i * dst_next, dst_next, src + i * w_next, w_next, filter, dy, channel,
                              count, length);
            }
            for (; i + 3 <= window.i1; i += 3) {
                add_row_block(3, dst + i * dst_next, dst_next, src + i * w_next, w_next, filter, dy, channel,
                              count, length);
            }
        }
        for (; i < window.i1; i++) {
            float *row = dx + (ptrdiff_t)(window.top + i * s->dilation_h) * s->x_h;
            const float *weight = w + (ptrdiff_t)i * s->kw * s->c;
            if (s->dilation_w == 1 && s->x_w == s->c) {
                add_row(row + (ptrdiff_t)(window.left + window.j0) * s->x_w,
                        weight + (ptrdiff_t)window.j0 * s->c, filter, dy, channel, count, length);
                continue;
            }
            for (int32_t j = window.j0; j < window.j1; j++) {
                add_row(row + (ptrdiff_t)(window.left + j * s->dilation_w) * s->x_w,
                        weight + (ptrdiff_t)j * s->c, filter, dy, channel, count, s->c);
            }
        }
    }
}

void ag_conv2d_pool_dx_f32_host(const float *dy, const uint8_t *index, const float *w, float *dx, int32_t n,
                                const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    const size_t counts = sizeof(int32_t) * (size_t)(s->pool_h * s->pool_w);
    channel_groups groups;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        memset(dx, 0, sizeof(float) * (size_t)s->h * (size_t)s->w * (size_t)s->c);
        for (int32_t e = 0; e < s->ph * s->pw; e++, dy += s->o, index += s->o) {
            for (int32_t o = 0; o < s->o; o += CHANNEL_BLOCK) {
                const int32_t end = s->o - o < CHANNEL_BLOCK ? s->o - o : CHANNEL_BLOCK;
                memset(groups.count, 0, counts);
                for (int32_t k = 0; k < end; k++) {
                    const int32_t element = index[o + k], slot = groups.count[element];
                    groups.channel[element][slot] = (uint8_t)k;
                    groups.count[element] = slot + (dy[o + k] != 0.0f);
                }
                add_channel_groups(&groups, dy + o, w + o * filter, dx, e / s->pw, e % s->pw, s);
            }
        }
    }
}

enum { MAX_LISTED = 1024, MAX_FILTER = 4096 };

/* The selected windows of one channel that are entirely inside x: where they start, and their dy. */
typedef struct {
    int32_t count;
    const float *x[MAX_LISTED];
    float dy[MAX_LISTED];
} window_list;

/* sums[rows][length] += dy times the rows of the windows; `rows` and `vectors`, of which the last has `rest`
 * lanes, are constants. */
ALWAYS_INLINE void accumulate_rows(int32_t rows, int32_t vectors, const window_list *list, ptrdiff_t offset,
                                   ptrdiff_t row_step, float *sums, int32_t length, int32_t rest) {
    vec sum[8];
    for (int32_t i = 0; i < rows * vectors; i++) {
        sum[i] = zero();
    }
    for (int32_t e = 0; e < list->count; e++) {
        const vec factor = splat(list->dy[e]);
        const float *x = list->x[e] + offset;
        for (int32_t i = 0; i < rows; i++) {
            for (int32_t v = 0; v < vectors; v++) {
                const float *row = x + i * row_step + (ptrdiff_t)v * LANES;
                sum[i * vectors + v] += factor * (v == vectors - 1 ? load_partial(row, rest) : load(row));
            }
        }
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t v = 0; v < vectors; v++) {
            float *dst = sums + (ptrdiff_t)i * length + (ptrdiff_t)v * LANES;
            const int32_t count = v == vectors - 1 ? rest : LANES;
            store_partial(dst, load_partial(dst, count) + sum[i * vectors + v], count);
        }
    }
}

static void accumulate_list(const window_list *list, const ag_conv2d_pool_shape *s, float *sums) {
    const int32_t length = s->kw * s->c;
    const ptrdiff_t row_step = (ptrdiff_t)s->dilation_h * s->x_h;
    for (int32_t k = 0; k < length; k += 2 * LANES) {
        const int32_t rest = length - k;
        int32_t i = 0;
        if (rest <= LANES) {
            for (; i + 5 <= s->kh; i += 5) {
                accumulate_rows(5, 1, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k,
                                length, rest);
            }
            for (; i + 3 <= s->kh; i += 3) {
                accumulate_rows(3, 1, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k,
                                length, rest);
            }
            for (; i < s->kh; i++) {
                accumulate_rows(1, 1, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k,
                                length, rest);
            }
            continue;
        }
        const int32_t second = rest < 2 * LANES ? rest - LANES : LANES;
        for (; i + 3 <= s->kh; i += 3) {
            accumulate_rows(3, 2, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k, length,
                            second);
        }
        for (; i + 2 <= s->kh; i += 2) {
            accumulate_rows(2, 2, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k, length,
                            second);
        }
        for (; i < s->kh; i++) {
            accumulate_rows(1, 2, list, i * row_step + k, row_step, sums + (ptrdiff_t)i * length + k, length,
                            second);
        }
    }
}

/* The same for one window, which may extend past the edge, element by element. */
static void accumulate_window(const float *x, float dy, selected_window window, const ag_conv2d_pool_shape *s,
                              float *sums) {
    for (int32_t i = window.i0; i < window.i1; i++) {
        for (int32_t j = window.j0; j < window.j1; j++) {
            const float *src = x + (ptrdiff_t)(window.top + i * s->dilation_h) * s->x_h +
                               (ptrdiff_t)(window.left + j * s->dilation_w) * s->x_w;
            const int32_t first = (i * s->kw + j) * s->c;
            float *dst = sums + first;
            for (int32_t k = 0; k < s->c; k++) {
                dst[k] += dy * src[(ptrdiff_t)k * s->x_c];
            }
        }
    }
}

void ag_conv2d_pool_dw_f32_host(const float *x, const float *dy, const uint8_t *index, float *dw, int32_t n,
                                const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t filter = s->kh * s->kw * s->c, image = s->ph * s->pw;
    const bool contiguous = rows_are_contiguous(s);
    const bool all_inside = s->pad_top == 0 && s->pad_left == 0 &&
                            (s->oh - 1) * s->stride_h + (s->kh - 1) * s->dilation_h < s->h &&
                            (s->ow - 1) * s->stride_w + (s->kw - 1) * s->dilation_w < s->w;
    float sums[MAX_FILTER];
    window_list list;
    for (int32_t o = 0; o < s->o; o++, dw += filter) {
        memset(sums, 0, sizeof(float) * (size_t)filter);
        list.count = 0;
        for (int32_t b = 0; b < n; b++) {
            const float *src = x + (ptrdiff_t)b * s->x_n;
            ptrdiff_t e = (ptrdiff_t)b * image * s->o + o;
            for (int32_t p = 0; p < s->ph; p++) {
                for (int32_t q = 0; q < s->pw; q++, e += s->o) {
                    if (contiguous && all_inside) { /* no branch: which dy are 0 is not predictable */
                        int32_t top, left;
                        corner_of(p, q, index[e], s, &top, &left);
                        list.x[list.count] = src + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                        list.dy[list.count] = dy[e];
                        list.count += dy[e] != 0.0f;
                        if (list.count == MAX_LISTED) {
                            accumulate_list(&list, s, sums);
                            list.count = 0;
                        }
                        continue;
                    }
                    if (dy[e] == 0.0f) {
                        continue;
                    }
                    const selected_window window = selected_window_of(p, q, index[e], s);
                    if (!contiguous || window.i0 > 0 || window.i1 < s->kh || window.j0 > 0 ||
                        window.j1 < s->kw) {
                        accumulate_window(src, dy[e], window, s, sums);
                        continue;
                    }
                    list.x[list.count] =
                        src + (ptrdiff_t)window.top * s->x_h + (ptrdiff_t)window.left * s->x_w;
                    list.dy[list.count++] = dy[e];
                    if (list.count == MAX_LISTED) {
                        accumulate_list(&list, s, sums);
                        list.count = 0;
                    }
                }
            }
        }
        accumulate_list(&list, s, sums);
        for (int32_t k = 0; k < filter; k += LANES) {
            const int32_t count = filter - k < LANES ? filter - k : LANES;
            scale_add(dw + k, load_partial(sums + k, count), count, alpha, beta);
        }
    }
}
