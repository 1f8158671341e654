/* Convolution with few channels in each group, or to few output channels, and its gradients, as depthwise
 * convolutions in tiles of channels (window_sums.h). Channels are contiguous, and there are at least
 * AG_CHANNEL_TILE of the operand.
 *
 *     y:   for each output r of the groups, the weights of each input channel are packed as a window; the
 *          results of the channels of a group are added up:
 *
 *          input channels      0   1 | 2   3 | 4   5 | 6   7        two channels in each group
 *          results             s0  s1  s2  s3  s4  s5  s6  s7
 *          y[group, r]         s0+s1 | s2+s3 | s4+s5 | s6+s7
 *
 *     dx:  the same of dy's channels for each input channel r of the groups
 *     dw:  for each output r of the groups, dy[group, r], gathered for each input channel, times x */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/conv2d_group.h"
#include "tiles/window_sums.h"

#include <string.h>

/* Taps at a time, and tiles of channels on the stack, for packed weights and results, or for sums of dw and
 * pixels of dy: few, as the stacks of microcontrollers are small. Scratch memory holds all taps and
 * AG_SCRATCH_RESULTS results. */
enum {
    AG_MOST_TAPS = 9,
    AG_SPACE = AG_STACK_TILES,
    AG_DW_SPACE = AG_STACK_TILES + 4,
    AG_SCRATCH_RESULTS = 16
};

/* A tile of channels of the operand. Each group has `group` channels of the operand, `out_group` of the
 * result. */
typedef struct {
    ag_image image;
    int32_t group, out_group;
    int32_t lane;  /* the first channel that no tile before has, ... */
    int32_t place; /* ... and its distance in its group */
    bool adjoint;  /* the result is dx, the operand dy */
    bool add;      /* to the results in memory */
    float *space;  /* `tiles` tiles: packed weights of `taps` taps at most, then results */
    int32_t tiles, taps;
    float *results; /* of the tile, at most `most` */
    int32_t most;
} ag_group_tile;

/* The tile whose first member the image is. */
static inline const ag_group_tile *ag_tile_of(const ag_image *image) {
    const void *tile = image;
    return (const ag_group_tile *)tile;
}

/* Adds up each `group` sums, a constant, of `count` outputs that are `next` apart. */
ALWAYS_INLINE void ag_add_groups(int32_t group, bool add, const float *sums, float *out, ptrdiff_t out_group,
                                 ptrdiff_t next, int32_t count) {
    const int32_t groups = AG_CHANNEL_TILE / group;
    for (; count > 0; count--, sums += AG_CHANNEL_TILE, out += next) {
        float *to = out;
        EACH (i, groups) {
            const float *sum = sums + (ptrdiff_t)i * group;
            float total = 0.0f;
            EACH (k, group) {
                total = k == 0 ? sum[0] : total + sum[k];
            }
            *to = add ? *to + total : total;
            to += out_group;
        }
    }
}

/* Adds up the sums of the channels of each group. */
static void ag_add_channels(const ag_group_tile *t, const float *sums, float *out, ptrdiff_t next,
                            int32_t count) {
    const int32_t lanes = t->image.channels;
    const bool whole = t->lane == 0 && lanes == AG_CHANNEL_TILE;
    int32_t left = t->group - t->place;
    bool add = t->add || t->place > 0;
    if (whole && left >= AG_CHANNEL_TILE) {
        ag_add_groups(AG_CHANNEL_TILE, add, sums, out, t->out_group, next, count);
    } else if (whole && t->group == 1) {
        ag_add_groups(1, add, sums, out, t->out_group, next, count);
    } else if (whole && t->group == 2) {
        ag_add_groups(2, add, sums, out, t->out_group, next, count);
    } else {
        for (int32_t lane = t->lane, end; lane < lanes; lane = end, out += t->out_group) {
            const float *sum = sums + lane;
            float *to = out;
            end = ag_min(lane + left, lanes);
            for (int32_t i = count; i > 0; i--, sum += AG_CHANNEL_TILE, to += next) {
                float total = add ? *to + sum[0] : sum[0];
                for (int32_t k = 1; k < end - lane; k++) {
                    total += sum[k];
                }
                *to = total;
            }
            left = t->group;
            add = t->add;
        }
    }
}

static void ag_sum_run(const ag_image *image, ag_depthwise_tile *s, const float *in, const float *w,
                       float *out) {
    const ag_group_tile *const t = ag_tile_of(image);
    const ptrdiff_t next = s->c_next / (int32_t)sizeof(float);
    s->a = in;
    s->b = w;
    s->c = t->results;
    s->c_next = ag_bytes(AG_CHANNEL_TILE);
    ag_set_depthwise_tile(s, image->channels, 1, 0, 0);
    for (int32_t left = s->count; left > 0; left -= s->count, out += s->count * next) {
        s->count = ag_min(left, t->most);
        AG_DEPTHWISE_MICROKERNEL(s);
        ag_add_channels(t, t->results, out, next, s->count);
        s->a = ag_after(s->a, (ptrdiff_t)s->count * s->a_next);
    }
}

static void ag_zero_run(const ag_image *image, float *out, ptrdiff_t next, int32_t count) {
    const ag_group_tile *const t = ag_tile_of(image);
    if (!t->add) {
        memset(t->results, 0, (size_t)(t->most * AG_CHANNEL_TILE) * sizeof(float));
        for (; count > 0; count -= t->most, out += t->most * next) {
            ag_add_channels(t, t->results, out, next, ag_min(count, t->most));
        }
    }
}

/* An axis of y, or of a phase of dx. */
static AG_NOINLINE void ag_set_axis(ag_axis *axis, bool rows, bool adjoint, int32_t phase,
                                    const ag_conv2d_shape *s) {
    const int32_t size = rows ? s->h : s->w, outputs = rows ? s->oh : s->ow, taps = rows ? s->kh : s->kw;
    const int32_t stride = rows ? s->stride_h : s->stride_w, pad = rows ? s->pad_top : s->pad_left;
    const int32_t dilation = rows ? s->dilation_h : s->dilation_w;
    *axis = adjoint ? ag_adjoint_axis(phase, size, outputs, taps, stride, pad, dilation)
                    : ag_forward_axis(outputs, size, taps, stride, pad, dilation);
}

/* Restricts an axis to at most `most` of its taps, from `first` on. */
static AG_NOINLINE void ag_limit_taps(ag_axis *axis, int32_t first, int32_t most) {
    axis->in += first * axis->in_tap;
    axis->w += first * axis->w_tap;
    axis->taps = ag_min(axis->taps - first, most);
}

/* Packs the weights of two axes for result r of the groups, for each channel of the tile, which begins at
 * `channel`, and makes them the weights of the axes. */
static AG_NOINLINE void ag_pack_taps(const float *w, const ag_group_tile *t, int32_t channel, int32_t r,
                                     ag_axis *rows, ag_axis *columns, const ag_conv2d_shape *s) {
    const ag_conv2d_group g = ag_conv2d_group_of(s);
    const ptrdiff_t tap = (ptrdiff_t)columns->w_tap * g.channels;
    const ptrdiff_t row = (ptrdiff_t)rows->w_tap * s->kw * g.channels - columns->taps * tap;
    const ptrdiff_t channel_step = t->adjoint ? g.filter : 1, result_step = t->adjoint ? 1 : g.filter;
    w += ((ptrdiff_t)rows->w * s->kw + columns->w) * g.channels + r * result_step;
    for (int32_t lane = 0; lane < t->image.channels; lane++, channel++) {
        const int32_t group = channel / t->group, place = channel % t->group;
        const float *from = w + (ptrdiff_t)group * g.outputs * g.filter + place * channel_step;
        float *to = t->space + lane;
        for (int32_t i = 0; i < rows->taps; i++, from += row) {
            for (int32_t j = 0; j < columns->taps; j++, from += tap, to += AG_CHANNEL_TILE) {
                *to = *from;
            }
        }
    }
    rows->w = columns->w = 0;
    rows->w_tap = columns->w_tap = 1;
}

/* All images. */
static AG_NOINLINE void ag_images(ag_group_tile *t, int32_t n, const ag_axis *rows, const ag_axis *columns,
                                  const ag_conv2d_shape *s) {
    for (; n > 0; n--) {
        ag_window_sums(&t->image, rows, columns);
        t->image.in += t->adjoint ? s->oh * t->image.in_row : s->x_n;
        t->image.out += t->adjoint ? s->x_n : s->oh * t->image.out_row;
    }
}

/* Result r of a tile's groups, at `out`, some taps at a time; the tile's channels are at `in` from number
 * `channel` on. */
static void ag_sums_of_tile(ag_group_tile *t, const float *in, const float *w, float *out, int32_t n,
                            int32_t channel, int32_t r, int32_t phase, const ag_conv2d_shape *s) {
    ag_axis rows, columns;
    for (int32_t i = 0, j = 0, kh = 1; i == 0 || i < kh;) {
        ag_set_axis(&rows, true, t->adjoint, phase / s->stride_w, s);
        ag_set_axis(&columns, false, t->adjoint, phase % s->stride_w, s);
        const int32_t kw = columns.taps, width = kw > 0 ? ag_min(kw, t->taps) : 1;
        const int32_t height = t->taps / width;
        kh = rows.taps;
        ag_limit_taps(&rows, i, height);
        ag_limit_taps(&columns, j, width);
        ag_pack_taps(w, t, channel, r, &rows, &columns, s);
        t->image.w_row = (ptrdiff_t)columns.taps * AG_CHANNEL_TILE;
        t->image.in = in + channel;
        t->image.out = out;
        t->add = i + j > 0;
        t->most = t->tiles - rows.taps * columns.taps;
        t->results = t->space + (ptrdiff_t)rows.taps * t->image.w_row;
        ag_images(t, n, &rows, &columns, s);
        j = j + width < kw ? j + width : 0;
        i += j == 0 ? height : 0;
    }
}

/* All outputs of y, or of dx phase by phase, tile by tile. */
static void ag_sums_of_groups(const float *in, const float *w, float *out, int32_t n, bool adjoint,
                              float *scratch, const ag_conv2d_shape *s, const ag_epilogue *epilogue) {
    const int32_t channels = adjoint ? s->o : s->c, phases = adjoint ? s->stride_h * s->stride_w : 1;
    float space[AG_SPACE * AG_CHANNEL_TILE];
    ag_group_tile t;
    t.adjoint = adjoint;
    t.image.w = t.space = scratch == NULL ? space : scratch;
    t.taps = scratch == NULL ? AG_MOST_TAPS : s->kh * s->kw;
    t.tiles = scratch == NULL ? AG_SPACE : t.taps + AG_SCRATCH_RESULTS;
    t.image.w_tap = AG_CHANNEL_TILE;
    t.image.in_row = t.image.out_row = (ptrdiff_t)s->ow * s->ldy;
    t.image.in_pixel = t.image.out_pixel = s->ldy;
    t.group = channels / s->groups;
    t.out_group = (adjoint ? s->c : s->o) / s->groups;
    *(adjoint ? &t.image.out_row : &t.image.in_row) = s->x_h;
    *(adjoint ? &t.image.out_pixel : &t.image.in_pixel) = s->x_w;
    for (int32_t k = 0, done = 0; k < channels; k = ag_next_channel_tile(k, channels)) {
        t.image.channels = ag_min(channels - k, AG_CHANNEL_TILE);
        t.lane = done - k;
        t.place = done % t.group;
        for (int32_t r = 0; r < t.out_group; r++) {
            float *const to = out + (ptrdiff_t)(done / t.group) * t.out_group + r;
            for (int32_t phase = 0; phase < phases; phase++) {
                ag_sums_of_tile(&t, in, w, to, n, k, r, phase, s);
            }
        }
        done = k + t.image.channels;
    }
    AG_FINISH(epilogue, out, s->ldy, n * s->oh * s->ow, s->o);
}

void AG_SYMBOL(conv2d_by_channels_f32)(const float *x, const float *w, float *y, int32_t n, void *scratch,
                                       const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    ag_sums_of_groups(x, w, y, n, false, scratch, shape, epilogue);
}

void AG_SYMBOL(conv2d_dx_by_channels_f32)(const float *dy, const float *w, float *dx, int32_t n,
                                          void *scratch, const ag_conv2d_shape *shape) {
    ag_sums_of_groups(dy, w, dx, n, true, scratch, shape, NULL);
}

/* Some taps, the windows along a row that have each of them inside x, and the tile's channels of dy for
 * result 0 of their groups; lanes without one repeat the last. */
typedef struct {
    int32_t first, count, lanes, dy[AG_CHANNEL_TILE];
    ag_window_range windows[AG_MOST_TAPS];
} ag_dw_taps;

/* How far a tap is to the right of an output. */
static int32_t ag_tap_left(int32_t tap, const ag_conv2d_shape *s) {
    return tap % s->kw * s->dilation_w - s->pad_left;
}

/* Adds to the sum of each tap the products of x and `pixels` packed pixels of row p of dy, from column q on.
 */
static void ag_add_products(float *sum, const float *packed, const ag_dw_taps *taps, const float *x,
                            int32_t p, int32_t q, int32_t pixels, const ag_conv2d_shape *s) {
    ag_depthwise_tile t;
    t.k_runs = t.count = 1;
    t.a_step = ag_bytes((ptrdiff_t)s->stride_w * s->x_w);
    t.b_step = ag_bytes(AG_CHANNEL_TILE);
    t.a_skip = t.b_skip = t.a_next = t.c_next = 0;
    ag_set_depthwise_tile(&t, taps->lanes, 1, 0, 0);
    for (int32_t i = 0; i < taps->count; i++, sum += AG_CHANNEL_TILE) {
        const int32_t tap = taps->first + i, begin = taps->windows[i].begin > q ? taps->windows[i].begin : q;
        const int32_t row = p * s->stride_h - s->pad_top + tap / s->kw * s->dilation_h;
        t.k = ag_min(taps->windows[i].end, q + pixels) - begin;
        if (row >= 0 && row < s->h && t.k > 0) {
            t.a = x + (ptrdiff_t)row * s->x_h;
            t.a += ((ptrdiff_t)begin * s->stride_w + ag_tap_left(tap, s)) * s->x_w;
            t.b = packed + (ptrdiff_t)(begin - q) * AG_CHANNEL_TILE;
            t.init = t.c = sum;
            AG_DEPTHWISE_MICROKERNEL(&t);
        }
    }
}

/* The sums of some taps over all images; the first pixels are at x and dy. */
static void ag_sum_products(float *sums, const ag_dw_taps *taps, const float *x, const float *dy, int32_t n,
                            const ag_conv2d_shape *s) {
    const int32_t most = AG_DW_SPACE - taps->count, parts = (s->ow + most - 1) / most;
    float *const packed = sums + (ptrdiff_t)taps->count * AG_CHANNEL_TILE;
    memset(sums, 0, (size_t)(packed - sums) * sizeof *sums);
    for (; n > 0; n--, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            for (int32_t q = 0, pixels, left = parts; left > 0; left--, q += pixels) {
                float *to = packed;
                pixels = (s->ow - q) / left;
                for (int32_t i = 0; i < pixels; i++, dy += s->ldy) {
                    EACH (lane, AG_CHANNEL_TILE) {
                        *to++ = dy[taps->dy[lane]];
                    }
                }
                ag_add_products(sums, packed, taps, x, p, q, pixels, s);
            }
        }
    }
}

void AG_SYMBOL(conv2d_dw_by_channels_f32)(const float *x, const float *dy, float *dw, int32_t n,
                                          const ag_conv2d_shape *shape, float alpha, float beta) {
    const ag_conv2d_shape *s = shape;
    const ag_conv2d_group g = ag_conv2d_group_of(s);
    float sums[AG_DW_SPACE * AG_CHANNEL_TILE];
    ag_dw_taps taps;
    for (int32_t k = 0, done = 0; k < s->c; k = ag_next_channel_tile(k, s->c)) {
        taps.lanes = ag_min(s->c - k, AG_CHANNEL_TILE);
        for (int32_t lane = 0; lane < AG_CHANNEL_TILE; lane++) {
            taps.dy[lane] = ag_min(k + lane, s->c - 1) / g.channels * g.outputs;
        }
        for (int32_t r = 0; r < g.outputs; r++) {
            for (taps.first = 0; taps.first < s->kh * s->kw; taps.first += taps.count) {
                taps.count = ag_min(s->kh * s->kw - taps.first, AG_MOST_TAPS);
                for (int32_t i = 0; i < taps.count; i++) {
                    taps.windows[i] =
                        ag_windows_with_tap(ag_tap_left(taps.first + i, s), s->ow, s->stride_w, s->w);
                }
                ag_sum_products(sums, &taps, x + k, dy + r, n, s);
                for (int32_t lane = done - k; lane < taps.lanes; lane++) {
                    const float *sum = sums + lane;
                    float *to = dw + (taps.dy[lane] + r) * g.filter + (k + lane) % g.channels;
                    to += (ptrdiff_t)taps.first * g.channels;
                    for (int32_t i = taps.count; i > 0; i--, sum += AG_CHANNEL_TILE, to += g.channels) {
                        *to = beta == 0.0f ? alpha * *sum : alpha * *sum + beta * *to;
                    }
                }
            }
        }
        done = k + taps.lanes;
    }
}
