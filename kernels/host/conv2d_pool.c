/* Convolution with pooling by maximum. Forward several pooled pixels at once, for each place in their
 * windows; backward only the places that were the largest, and only where dy is not 0. */
#include "ag_kernels.h"
#include "window_sums.h"

#include <string.h>

static inline bool rows_are_runs(const ag_conv2d_pool_shape *s) {
    return s->dilation_w == 1 && s->x_w == s->c && (s->c == 1 || s->x_c == 1);
}

typedef struct {
    const ag_conv2d_pool_shape *s;
    bool runs; /* a row of a window is a run of elements of x */
    int32_t offset[TAPS];
    float w[TAPS * LANES];
} turned;

static void turn(turned *t, const float *w, int32_t outputs) {
    const ag_conv2d_pool_shape *s = t->s;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    float *to = t->w;
    int32_t *offset = t->offset;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            for (int32_t k = 0; k < s->c; k++, w++, to += LANES) {
                *offset++ = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w + k * s->x_c;
                for (int32_t o = 0; o < LANES; o++) {
                    to[o] = o < outputs ? w[o * filter] : 0.0f;
                }
            }
        }
    }
}

/* A pooled pixel: where its first window begins in x, as row, column and pointer. */
typedef struct {
    const float *x;
    int32_t top, left;
    float *y;
    uint8_t *index;
    int32_t rows, columns; /* of its pooling window that lie inside the convolution's result */
} pooled;

/* The convolution at place (row, column) of the pooling windows of `pixels` pooled pixels. */
ALWAYS_INLINE void sums_at(int32_t pixels, const turned *t, const pooled *p, int32_t row, int32_t column,
                           int32_t outputs, vec *sum) {
    const ag_conv2d_pool_shape *s = t->s;
    const int32_t width = s->kw * s->c, down = row * s->stride_h, along = column * s->stride_w;
    const int32_t high = (s->kh - 1) * s->dilation_h, wide = (s->kw - 1) * s->dilation_w;
    const float *from[PIXELS];
    bool inside = true;
    for (int32_t u = 0; u < pixels; u++) {
        const int32_t top = p[u].top + down, left = p[u].left + along;
        inside = inside && top >= 0 && left >= 0 && top + high < s->h && left + wide < s->w;
        from[u] = p[u].x + (ptrdiff_t)down * s->x_h + (ptrdiff_t)along * s->x_w;
        sum[u] = zero();
    }
    if (inside && t->runs && pixels == PIXELS) {
        const ptrdiff_t to_next = (ptrdiff_t)s->dilation_h * s->x_h;
        if (outputs <= NARROW) {
            narrow_run_windows(sum, from, to_next, t->w, s->kh, width);
        } else {
            run_windows(sum, from, to_next, t->w, s->kh, width);
        }
        return;
    }
    if (inside) {
        add_windows(pixels, sum, from, t->offset, t->w, s->kh * width);
        return;
    }
    for (int32_t u = 0; u < pixels; u++) {
        const int32_t top = p[u].top + down, left = p[u].left + along;
        const int32_t i1 = last_inside(top, s->kh, s->dilation_h, s->h);
        const int32_t j0 = first_inside(left, s->dilation_w);
        const int32_t j1 = last_inside(left, s->kw, s->dilation_w, s->w);
        for (int32_t i = first_inside(top, s->dilation_h); i < i1; i++) {
            const int32_t at = i * width + j0 * s->c;
            add_windows(1, sum + u, from + u, t->offset + at, t->w + (ptrdiff_t)at * LANES,
                        (j1 > j0 ? j1 - j0 : 0) * s->c);
        }
    }
}

ALWAYS_INLINE vec chosen(lanes_s32 mask, vec a, vec b) {
    return (vec)((mask & (lanes_s32)a) | (~mask & (lanes_s32)b));
}

/* y and index of `pixels` pooled pixels, whose pooling windows have as many rows and columns. */
ALWAYS_INLINE void pool(int32_t pixels, const turned *t, const pooled *p, vec bias, int32_t outputs) {
    const ag_conv2d_pool_shape *s = t->s;
    vec best[PIXELS], sum[PIXELS];
    lanes_s32 which[PIXELS];
    sums_at(pixels, t, p, 0, 0, outputs, sum);
    for (int32_t u = 0; u < pixels; u++) {
        best[u] = sum[u] + bias;
        which[u] = (lanes_s32){0};
    }
    for (int32_t e = 1; e < p->rows * p->columns; e++) {
        const int32_t row = e / p->columns, column = e % p->columns, place = row * s->pool_w + column;
        sums_at(pixels, t, p, row, column, outputs, sum);
        for (int32_t u = 0; u < pixels; u++) {
            const vec found = sum[u] + bias;
            const lanes_s32 larger = (found > best[u]) | (found != found);
            best[u] = chosen(larger, found, best[u]);
            which[u] = (larger & place) | (~larger & which[u]);
        }
    }
    for (int32_t u = 0; u < pixels; u++) {
        store_part(p[u].y, best[u], outputs);
        store_bytes(p[u].index, which[u], outputs);
    }
}

void ag_conv2d_pool_f32_host(const float *x, const float *w, const float *bias, float *y, uint8_t *index,
                             int32_t n, const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t filter = s->kh * s->kw * s->c, image = s->ph * s->pw;
    turned t;
    pooled p[PIXELS];
    t.s = s;
    t.runs = rows_are_runs(s);
    for (int32_t o = 0; o < s->o; o += LANES) {
        const int32_t outputs = s->o - o < LANES ? s->o - o : LANES;
        const vec add = load_part(bias + o, outputs);
        int32_t many = 0;
        turn(&t, w + (ptrdiff_t)o * filter, outputs);
        for (int32_t e = 0, b = 0, i = 0, j = 0; e < n * image; e++) {
            const int32_t row = i * s->pool_stride_h, column = j * s->pool_stride_w;
            pooled *now = p + many;
            now->top = row * s->stride_h - s->pad_top;
            now->left = column * s->stride_w - s->pad_left;
            now->x = x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)now->top * s->x_h + (ptrdiff_t)now->left * s->x_w;
            if (++j == s->pw) {
                j = 0;
                b += ++i == s->ph;
                i = i == s->ph ? 0 : i;
            }
            now->y = y + (ptrdiff_t)e * s->o + o;
            now->index = index + (ptrdiff_t)e * s->o + o;
            now->rows = s->oh - row < s->pool_h ? s->oh - row : s->pool_h;
            now->columns = s->ow - column < s->pool_w ? s->ow - column : s->pool_w;
            if (now->rows < s->pool_h || now->columns < s->pool_w) {
                pool(1, &t, now, add, outputs);
            } else if (++many == PIXELS) {
                pool(PIXELS, &t, p, add, outputs);
                many = 0;
            }
        }
        for (int32_t u = 0; u < many; u++) {
            pool(1, &t, p + u, add, outputs);
        }
    }
}

/* A place that was the largest in its pooling window, and what of the convolution's window there lies in x.
 */
typedef struct {
    int32_t top, left, i0, i1, j0, j1;
} place;

static inline void corner_of(int32_t p, int32_t q, int32_t which, const ag_conv2d_pool_shape *s, int32_t *top,
                             int32_t *left) {
    const int32_t row = s->pool_h <= 2 ? which >= s->pool_w : which / s->pool_w; /* most often no division */
    *top = (p * s->pool_stride_h + row) * s->stride_h - s->pad_top;
    *left = (q * s->pool_stride_w + which - row * s->pool_w) * s->stride_w - s->pad_left;
}

static inline place place_of(int32_t p, int32_t q, int32_t which, const ag_conv2d_pool_shape *s) {
    place at;
    corner_of(p, q, which, s, &at.top, &at.left);
    at.i0 = first_inside(at.top, s->dilation_h);
    at.i1 = last_inside(at.top, s->kh, s->dilation_h, s->h);
    at.j0 = first_inside(at.left, s->dilation_w);
    at.j1 = last_inside(at.left, s->kw, s->dilation_w, s->w);
    return at;
}

/* to[length] += the sum over `count` channels of dy w, each channel's weights `filter` apart. */
static void add_run(float *to, const float *w, ptrdiff_t filter, const float *dy, const uint8_t *channel,
                    int32_t count, int32_t length) {
    int32_t k = 0;
    for (; k + LANES < length; k += 2 * LANES) {
        const int32_t rest = length - k - LANES < LANES ? length - k - LANES : LANES;
        vec low = load(to + k), high = load_part(to + k + LANES, rest);
        for (int32_t e = 0; e < count; e++) {
            const float *from = w + channel[e] * filter + k;
            const vec factor = splat(dy[channel[e]]);
            low += factor * load(from);
            high += factor * load_part(from + LANES, rest);
        }
        store(to + k, low);
        store_part(to + k + LANES, high, rest);
    }
    if (k < length) {
        vec sum = load_part(to + k, length - k);
        for (int32_t e = 0; e < count; e++) {
            sum += splat(dy[channel[e]]) * load_part(w + channel[e] * filter + k, length - k);
        }
        store_part(to + k, sum, length - k);
    }
}

/* The same for `rows` rows at once, to_next and w_next elements apart; LANES < length <= 2 LANES. */
ALWAYS_INLINE void add_run_rows(int32_t rows, float *to, ptrdiff_t to_next, const float *w, ptrdiff_t w_next,
                                ptrdiff_t filter, const float *dy, const uint8_t *channel, int32_t count,
                                int32_t length) {
    const int32_t rest = length - LANES;
    vec low[5], high[5];
    for (int32_t i = 0; i < rows; i++) {
        low[i] = load(to + i * to_next);
        high[i] = load_part(to + i * to_next + LANES, rest);
    }
    for (int32_t e = 0; e < count; e++) {
        const float *from = w + channel[e] * filter;
        const vec factor = splat(dy[channel[e]]);
        for (int32_t i = 0; i < rows; i++) {
            low[i] += factor * load(from + i * w_next);
            high[i] += factor * load_part(from + i * w_next + LANES, rest);
        }
    }
    for (int32_t i = 0; i < rows; i++) {
        store(to + i * to_next, low[i]);
        store_part(to + i * to_next + LANES, high[i], rest);
    }
}

enum { CHANNELS = 64, PLACES = 256 };

/* Channels of one pooled pixel by the place that they chose. */
typedef struct {
    int32_t count[PLACES];
    uint8_t channel[PLACES][CHANNELS];
} choices;

static void add_choices(const choices *by_place, const float *dy, const float *w, float *dx, int32_t p,
                        int32_t q, const ag_conv2d_pool_shape *s) {
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    for (int32_t which = 0; which < s->pool_h * s->pool_w; which++) {
        const int32_t count = by_place->count[which];
        if (count == 0) {
            continue;
        }
        const place at = place_of(p, q, which, s);
        const uint8_t *channel = by_place->channel[which];
        const int32_t length = (at.j1 - at.j0) * s->c;
        int32_t i = at.i0;
        if (s->dilation_w == 1 && s->x_w == s->c && length > LANES && length <= 2 * LANES) {
            const ptrdiff_t to_next = (ptrdiff_t)s->dilation_h * s->x_h, w_next = (ptrdiff_t)s->kw * s->c;
            float *to = dx + (ptrdiff_t)at.top * s->x_h + (ptrdiff_t)(at.left + at.j0) * s->x_w;
            const float *from = w + (ptrdiff_t)at.j0 * s->c;
            for (; i + 5 <= at.i1; i += 5) {
                add_run_rows(5, to + i * to_next, to_next, from + i * w_next, w_next, filter, dy, channel,
                             count, length);
            }
            for (; i + 3 <= at.i1; i += 3) {
                add_run_rows(3, to + i * to_next, to_next, from + i * w_next, w_next, filter, dy, channel,
                             count, length);
            }
        }
        for (; i < at.i1; i++) {
            float *row = dx + (ptrdiff_t)(at.top + i * s->dilation_h) * s->x_h;
            const float *weight = w + (ptrdiff_t)i * s->kw * s->c;
            if (s->dilation_w == 1 && s->x_w == s->c) {
                add_run(row + (ptrdiff_t)(at.left + at.j0) * s->x_w, weight + (ptrdiff_t)at.j0 * s->c, filter,
                        dy, channel, count, length);
                continue;
            }
            for (int32_t j = at.j0; j < at.j1; j++) {
                add_run(row + (ptrdiff_t)(at.left + j * s->dilation_w) * s->x_w, weight + (ptrdiff_t)j * s->c,
                        filter, dy, channel, count, s->c);
            }
        }
    }
}

void ag_conv2d_pool_dx_f32_host(const float *dy, const uint8_t *index, const float *w, float *dx, int32_t n,
                                const ag_conv2d_pool_shape *shape) {
    const ag_conv2d_pool_shape *s = shape;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * s->c;
    const size_t counts = sizeof(int32_t) * (size_t)(s->pool_h * s->pool_w);
    choices by_place;
    for (int32_t b = 0; b < n; b++, dx += s->x_n) {
        memset(dx, 0, sizeof(float) * (size_t)s->h * (size_t)s->w * (size_t)s->c);
        for (int32_t e = 0; e < s->ph * s->pw; e++, dy += s->o, index += s->o) {
            for (int32_t o = 0; o < s->o; o += CHANNELS) {
                const int32_t end = s->o - o < CHANNELS ? s->o - o : CHANNELS;
                memset(by_place.count, 0, counts);
                for (int32_t k = 0; k < end; k++) {
                    const int32_t which = index[o + k], at = by_place.count[which];
                    by_place.channel[which][at] = (uint8_t)k;
                    by_place.count[which] = at + (dy[o + k] != 0.0f);
                }
                add_choices(&by_place, dy + o, w + o * filter, dx, e / s->pw, e % s->pw, s);
            }
        }
    }
}

enum { LISTED = 1024, MOST = 4096 };

/* The windows of one channel that lie wholly inside x: where they begin, and their dy. */
typedef struct {
    int32_t count;
    const float *x[LISTED];
    float dy[LISTED];
} windows;

/* sums[rows][length] += dy times the rows of the windows; `rows` and `vectors`, of which the last has `rest`
 * lanes, are constants. */
ALWAYS_INLINE void add_rows(int32_t rows, int32_t vectors, const windows *list, ptrdiff_t from,
                            ptrdiff_t apart, float *sums, int32_t length, int32_t rest) {
    vec sum[8];
    for (int32_t i = 0; i < rows * vectors; i++) {
        sum[i] = zero();
    }
    for (int32_t e = 0; e < list->count; e++) {
        const vec factor = splat(list->dy[e]);
        const float *x = list->x[e] + from;
        for (int32_t i = 0; i < rows; i++) {
            for (int32_t v = 0; v < vectors; v++) {
                const float *at = x + i * apart + (ptrdiff_t)v * LANES;
                sum[i * vectors + v] += factor * (v == vectors - 1 ? load_part(at, rest) : load(at));
            }
        }
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t v = 0; v < vectors; v++) {
            float *to = sums + (ptrdiff_t)i * length + (ptrdiff_t)v * LANES;
            const int32_t count = v == vectors - 1 ? rest : LANES;
            store_part(to, load_part(to, count) + sum[i * vectors + v], count);
        }
    }
}

static void add_windows_of(const windows *list, const ag_conv2d_pool_shape *s, float *sums) {
    const int32_t length = s->kw * s->c;
    const ptrdiff_t apart = (ptrdiff_t)s->dilation_h * s->x_h;
    for (int32_t k = 0; k < length; k += 2 * LANES) {
        const int32_t rest = length - k;
        int32_t i = 0;
        if (rest <= LANES) {
            for (; i + 5 <= s->kh; i += 5) {
                add_rows(5, 1, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, rest);
            }
            for (; i + 3 <= s->kh; i += 3) {
                add_rows(3, 1, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, rest);
            }
            for (; i < s->kh; i++) {
                add_rows(1, 1, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, rest);
            }
            continue;
        }
        const int32_t second = rest < 2 * LANES ? rest - LANES : LANES;
        for (; i + 3 <= s->kh; i += 3) {
            add_rows(3, 2, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, second);
        }
        for (; i + 2 <= s->kh; i += 2) {
            add_rows(2, 2, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, second);
        }
        for (; i < s->kh; i++) {
            add_rows(1, 2, list, i * apart + k, apart, sums + (ptrdiff_t)i * length + k, length, second);
        }
    }
}

/* The same for one window, which need not lie inside, element by element. */
static void add_one(const float *x, float dy, place at, const ag_conv2d_pool_shape *s, float *sums) {
    for (int32_t i = at.i0; i < at.i1; i++) {
        for (int32_t j = at.j0; j < at.j1; j++) {
            const float *from = x + (ptrdiff_t)(at.top + i * s->dilation_h) * s->x_h +
                                (ptrdiff_t)(at.left + j * s->dilation_w) * s->x_w;
            const int32_t first = (i * s->kw + j) * s->c;
            float *to = sums + first;
            for (int32_t k = 0; k < s->c; k++) {
                to[k] += dy * from[(ptrdiff_t)k * s->x_c];
            }
        }
    }
}

void ag_conv2d_pool_dw_f32_host(const float *x, const float *dy, const uint8_t *index, float *dw, int32_t n,
                                const ag_conv2d_pool_shape *shape, float alpha, float beta) {
    const ag_conv2d_pool_shape *s = shape;
    const int32_t filter = s->kh * s->kw * s->c, image = s->ph * s->pw;
    const bool runs = rows_are_runs(s);
    const bool all_inside = s->pad_top == 0 && s->pad_left == 0 &&
                            (s->oh - 1) * s->stride_h + (s->kh - 1) * s->dilation_h < s->h &&
                            (s->ow - 1) * s->stride_w + (s->kw - 1) * s->dilation_w < s->w;
    float sums[MOST];
    windows list;
    for (int32_t o = 0; o < s->o; o++, dw += filter) {
        memset(sums, 0, sizeof(float) * (size_t)filter);
        list.count = 0;
        for (int32_t b = 0; b < n; b++) {
            const float *from = x + (ptrdiff_t)b * s->x_n;
            ptrdiff_t e = (ptrdiff_t)b * image * s->o + o;
            for (int32_t p = 0; p < s->ph; p++) {
                for (int32_t q = 0; q < s->pw; q++, e += s->o) {
                    if (runs && all_inside) { /* no branch: which dy are 0 cannot be foretold */
                        int32_t top, left;
                        corner_of(p, q, index[e], s, &top, &left);
                        list.x[list.count] = from + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                        list.dy[list.count] = dy[e];
                        list.count += dy[e] != 0.0f;
                        if (list.count == LISTED) {
                            add_windows_of(&list, s, sums);
                            list.count = 0;
                        }
                        continue;
                    }
                    if (dy[e] == 0.0f) {
                        continue;
                    }
                    const place at = place_of(p, q, index[e], s);
                    if (!runs || at.i0 > 0 || at.i1 < s->kh || at.j0 > 0 || at.j1 < s->kw) {
                        add_one(from, dy[e], at, s, sums);
                        continue;
                    }
                    list.x[list.count] = from + (ptrdiff_t)at.top * s->x_h + (ptrdiff_t)at.left * s->x_w;
                    list.dy[list.count++] = dy[e];
                    if (list.count == LISTED) {
                        add_windows_of(&list, s, sums);
                        list.count = 0;
                    }
                }
            }
        }
        add_windows_of(&list, s, sums);
        for (int32_t k = 0; k < filter; k += LANES) {
            const int32_t count = filter - k < LANES ? filter - k : LANES;
            finish(dw + k, load_part(sums + k, count), count, alpha, beta);
        }
    }
}
