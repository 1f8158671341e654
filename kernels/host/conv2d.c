/* Convolution. A 1 x 1 convolution is gemm; otherwise tiles of several pixels x one vector of output channels
 * in registers (window_sums.h). */
#include "ag_kernels.h"
#include "window_sums.h"

/* A 1 x 1 convolution: images are matrices of pixels and channels. */
static bool is_gemm(const ag_conv2d_shape *s) {
    return s->kh == 1 && s->kw == 1 && s->stride_h == 1 && s->stride_w == 1 && s->pad_top == 0 &&
           s->pad_left == 0 && s->groups == 1 && (s->x_c == 1 || s->c == 1) && s->x_h == s->w * s->x_w &&
           s->oh == s->h && s->ow == s->w;
}

/* The packed weights of channels [first, first + channels) of a group: w[taps][LANES], and the offset of each
 * tap in x. */
typedef struct {
    const ag_conv2d_shape *s;
    int32_t channels;
    int32_t offset[TAPS];
    float w[TAPS * LANES];
} packed_filter;

static void pack_filter(packed_filter *t, const float *w, int32_t filter, int32_t first, int32_t outputs) {
    const ag_conv2d_shape *s = t->s;
    const int32_t depth = s->c / s->groups;
    float *dst = t->w;
    int32_t *offset = t->offset;
    for (int32_t i = 0; i < s->kh; i++) {
        for (int32_t j = 0; j < s->kw; j++) {
            for (int32_t k = first; k < first + t->channels; k++, dst += LANES) {
                const float *src = w + ((ptrdiff_t)i * s->kw + j) * depth + k;
                *offset++ = i * s->dilation_h * s->x_h + j * s->dilation_w * s->x_w + k * s->x_c;
                for (int32_t o = 0; o < LANES; o++) {
                    dst[o] = o < outputs ? src[(ptrdiff_t)o * filter] : 0.0f;
                }
            }
        }
    }
}

/* Adds rows [i0, i1) and columns [j0, j1) of the windows of a tile of pixels, x_step apart, to y, or stores
 * them. */
ALWAYS_INLINE void pixel_tile(int32_t pixels, const packed_filter *t, const float *x, ptrdiff_t x_step,
                              float *y, int32_t i0, int32_t i1, int32_t j0, int32_t j1, int32_t outputs,
                              bool add) {
    const ag_conv2d_shape *s = t->s;
    const int32_t width = s->kw * t->channels;
    const float *src[PIXELS];
    vec sum[PIXELS];
    for (int32_t p = 0; p < pixels; p++) {
        src[p] = x + p * x_step;
        sum[p] = add ? load_partial(y + (ptrdiff_t)p * s->ldy, outputs) : zero();
    }
    if (j1 - j0 == s->kw) {
        accumulate_windows(pixels, sum, src, t->offset + (ptrdiff_t)i0 * width,
                           t->w + (ptrdiff_t)i0 * width * LANES, (i1 - i0) * width);
    } else {
        for (int32_t i = i0; i < i1; i++) {
            const int32_t offset = i * width + j0 * t->channels;
            accumulate_windows(pixels, sum, src, t->offset + offset, t->w + (ptrdiff_t)offset * LANES,
                               (j1 - j0) * t->channels);
        }
    }
    for (int32_t p = 0; p < pixels; p++) {
        store_partial(y + (ptrdiff_t)p * s->ldy, sum[p], outputs);
    }
}

/* One row of pixels of y. */
static void pixel_row(const packed_filter *t, const float *x, float *y, int32_t p, int32_t outputs,
                      bool add) {
    const ag_conv2d_shape *s = t->s;
    const int32_t top = p * s->stride_h - s->pad_top;
    const int32_t i0 = first_valid_tap(top, s->dilation_h),
                  i1 = end_valid_tap(top, s->kh, s->dilation_h, s->h);
    const int32_t rows = i1 < i0 ? i0 : i1;
    const ptrdiff_t step = (ptrdiff_t)s->stride_w * s->x_w;
    x += (ptrdiff_t)top * s->x_h - (ptrdiff_t)s->pad_left * s->x_w;
    for (int32_t q = 0; q < s->ow;) {
        const int32_t left = q * s->stride_w - s->pad_left;
        const int32_t tile_count = q + PIXELS <= s->ow ? PIXELS : q + 4 <= s->ow ? 4 : 1;
        const int32_t reach = left + (tile_count - 1) * s->stride_w + (s->kw - 1) * s->dilation_w;
        const float *src = x + q * step;
        float *dst = y + (ptrdiff_t)q * s->ldy;
        if (left >= 0 && reach < s->w && tile_count == PIXELS) {
            pixel_tile(PIXELS, t, src, step, dst, i0, rows, 0, s->kw, outputs, add);
            q += PIXELS;
        } else if (left >= 0 && tile_count >= 4 && reach - (tile_count - 4) * s->stride_w < s->w) {
            pixel_tile(4, t, src, step, dst, i0, rows, 0, s->kw, outputs, add);
            q += 4;
        } else {
            const int32_t j0 = first_valid_tap(left, s->dilation_w);
            const int32_t j1 = end_valid_tap(left, s->kw, s->dilation_w, s->w);
            pixel_tile(1, t, src, step, dst, i0, rows, j0, j1 < j0 ? j0 : j1, outputs, add);
            q++;
        }
    }
}

void ag_conv2d_f32_host(const float *x, const float *w, float *y, int32_t n, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t depth = s->c / s->groups, outputs = s->o / s->groups;
    const int32_t filter = s->kh * s->kw * depth, max_channels = TAPS / (s->kh * s->kw);
    const ptrdiff_t image = (ptrdiff_t)s->oh * s->ow * s->ldy;
    if (is_gemm(s)) {
        for (int32_t b = 0; b < n; b++, x += s->x_n, y += image) {
            ag_gemm_nt_f32_host(x, s->x_w, w, s->c, y, s->ldy, s->h * s->w, s->o, s->c, 1.0f, 0.0f);
        }
        return;
    }
    packed_filter t;
    t.s = s;
    for (int32_t g = 0; g < s->groups; g++) {
        for (int32_t o = 0; o < outputs; o += LANES) {
            const int32_t count = outputs - o < LANES ? outputs - o : LANES;
            const int32_t first_output = g * outputs + o;
            for (int32_t k = 0; k < depth; k += max_channels) {
                t.channels = depth - k < max_channels ? depth - k : max_channels;
                pack_filter(&t, w + (ptrdiff_t)first_output * filter, filter, k, count);
                for (int32_t b = 0; b < n; b++) {
                    const float *src = x + (ptrdiff_t)b * s->x_n + (ptrdiff_t)g * depth * s->x_c;
                    float *dst = y + b * image + first_output;
                    for (int32_t p = 0; p < s->oh; p++, dst += (ptrdiff_t)s->ow * s->ldy) {
                        pixel_row(&t, src, dst, p, count, k > 0);
                    }
                }
            }
        }
    }
}

static const float zero_dy[TAPS]; /* read for pixels outside the image */

/* A tile of pixels of dx in one row, stride_w apart, from `column` on; channels [k, k + count) of a group. */
ALWAYS_INLINE void dx_pixels(int32_t pixels, const ag_conv2d_shape *s, const float *dy, const float *w,
                             float *dx, int32_t row, int32_t column, int32_t count) {
    const int32_t depth = s->c / s->groups, outputs = s->o / s->groups;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * depth;
    vec sum[PIXELS];
    for (int32_t u = 0; u < pixels; u++) {
        sum[u] = zero();
    }
    for (int32_t i = 0; i < s->kh; i++) {
        const int32_t down = row + s->pad_top - i * s->dilation_h;
        if (down < 0 || down % s->stride_h != 0 || down / s->stride_h >= s->oh) {
            continue;
        }
        for (int32_t j = 0; j < s->kw; j++) {
            const int32_t along = column + s->pad_left - j * s->dilation_w;
            /* rounds towards 0 where along < 0 and not a multiple, which is rejected below */
            const int32_t q = along / s->stride_w;
            if (along % s->stride_w != 0 || q + pixels <= 0 || q >= s->ow) {
                continue;
            }
            const float *dy_pixel = dy + ((ptrdiff_t)(down / s->stride_h) * s->ow + q) * s->ldy;
            const float *weight = w + ((ptrdiff_t)i * s->kw + j) * depth;
            for (int32_t o = 0; o < outputs; o += TAPS, dy_pixel += TAPS) {
                const int32_t end = outputs - o < TAPS ? outputs - o : TAPS;
                const float *src[PIXELS];
                for (int32_t u = 0; u < pixels; u++) {
                    src[u] = q + u >= 0 && q + u < s->ow ? dy_pixel + (ptrdiff_t)u * s->ldy : zero_dy;
                }
                for (int32_t e = 0; e < end; e++, weight += filter) {
                    const vec factor = load_partial(weight, count);
                    for (int32_t u = 0; u < pixels; u++) {
                        sum[u] += splat(src[u][e]) * factor;
                    }
                }
            }
        }
    }
    for (int32_t u = 0; u < pixels; u++) {
        float *dst = dx + (ptrdiff_t)row * s->x_h + (ptrdiff_t)(column + u * s->stride_w) * s->x_w;
        if (s->x_c == 1) {
            store_partial(dst, sum[u], count);
        } else {
            float lanes[LANES];
            store(lanes, sum[u]);
            for (int32_t k = 0; k < count; k++) {
                dst[(ptrdiff_t)k * s->x_c] = lanes[k];
            }
        }
    }
}

void ag_conv2d_dx_f32_host(const float *dy, const float *w, float *dx, int32_t n,
                           const ag_conv2d_shape *shape) {
    const ag_conv2d_shape *s = shape;
    const int32_t depth = s->c / s->groups, outputs = s->o / s->groups;
    const ptrdiff_t filter = (ptrdiff_t)s->kh * s->kw * depth, image = (ptrdiff_t)s->oh * s->ow * s->ldy;
    if (is_gemm(s)) {
        for (int32_t b = 0; b < n; b++, dy += image, dx += s->x_n) {
            ag_gemm_nn_f32_host(dy, s->ldy, w, s->c, dx, s->x_w, s->h * s->w, s->c, s->o, 1.0f, 0.0f);
        }
        return;
    }
    for (int32_t b = 0; b < n; b++, dy += image, dx += s->x_n) {
        for (int32_t g = 0; g < s->groups; g++) {
            for (int32_t k = 0; k < depth; k += LANES) {
                const int32_t count = depth - k < LANES ? depth - k : LANES;
                const float *weight = w + (ptrdiff_t)g * outputs * filter + k,
                            *src = dy + (ptrdiff_t)g * outputs;
                float *dst = dx + (ptrdiff_t)(g * depth + k) * s->x_c;
                for (int32_t row = 0; row < s->h; row++) {
                    for (int32_t phase = 0; phase < s->stride_w; phase++) {
                        int32_t column = phase;
                        for (; column + (PIXELS - 1) * s->stride_w < s->w; column += PIXELS * s->stride_w) {
                            dx_pixels(PIXELS, s, src, weight, dst, row, column, count);
                        }
                        for (; column < s->w; column += s->stride_w) {
                            dx_pixels(1, s, src, weight, dst, row, column, count);
                        }
                    }
                }
            }
        }
    }
}

enum { TAP_TILE = LANES == 16 ? 16 : 8 };

/* A tile of taps of the weight gradient, for a vector of output channels. */
typedef struct {
    int32_t rows[TAP_TILE], columns[TAP_TILE], offset[TAP_TILE], tap[TAP_TILE]; /* a tap may occur twice */
    int32_t least_row, most_row, least_column, most_column;
} tap_tile;

/* `taps` of TAP_TILE sums over all pixels of all images. */
ALWAYS_INLINE void tap_sums(int32_t taps, const ag_conv2d_shape *s, const tap_tile *t, const float *x,
                            const float *dy, int32_t n, int32_t outputs, vec *result) {
    static const float outside = 0.0f;
    vec sum[TAP_TILE];
    for (int32_t i = 0; i < taps; i++) {
        sum[i] = zero();
    }
    for (int32_t b = 0; b < n; b++, x += s->x_n) {
        for (int32_t p = 0; p < s->oh; p++) {
            const int32_t top = p * s->stride_h - s->pad_top;
            const bool inside = top + t->least_row >= 0 && top + t->most_row < s->h;
            for (int32_t q = 0; q < s->ow; q++, dy += s->ldy) {
                const int32_t left = q * s->stride_w - s->pad_left;
                const float *window = x + (ptrdiff_t)top * s->x_h + (ptrdiff_t)left * s->x_w;
                const vec factor = load_partial(dy, outputs);
                if (inside && left + t->least_column >= 0 && left + t->most_column < s->w) {
                    for (int32_t i = 0; i < taps; i++) {
                        sum[i] += splat(window[t->offset[i]]) * factor;
                    }
                    continue;
                }
                for (int32_t i = 0; i < taps; i++) {
                    const int32_t row = top + t->rows[i], column = left + t->columns[i];
                    const bool inside_x = row >= 0 && row < s->h && column >= 0 && column < s->w;
                    sum[i] += splat(inside_x ? window[t->offset[i]] : outside) * factor;
                }
            }
        }
    }
    for (int32_t i = 0; i < taps; i++) {
        result[i] = sum[i];
    }
}

static void set_taps(tap_tile *t, const ag_conv2d_shape *s, int32_t first, int32_t count) {
    const int32_t depth = s->c / s->groups;
    t->least_row = t->least_column = INT32_MAX;
    t->most_row = t->most_column = 0;
    for (int32_t i = 0; i < TAP_TILE; i++) {
        const int32_t tap = first + (i < count ? i : count - 1);
        t->tap[i] = tap;
        t->rows[i] = tap / (s->kw * depth) * s->dilation_h;
        t->columns[i] = tap / depth % s->kw * s->dilation_w;
        t->offset[i] = t->rows[i] * s->x_h + t->columns[i] * s->x_w + tap % depth * s->x_c;
        t->least_row = t->rows[i] < t->least_row ? t->rows[i] : t->least_row;
        t->most_row = t->rows[i] > t->most_row ? t->rows[i] : t->most_row;
        t->least_column = t->columns[i] < t->least_column ? t->columns[i] : t->least_column;
        t->most_column = t->columns[i] > t->most_column ? t->columns[i] : t->most_column;
    }
}

void ag_conv2d_dw_f32_host(const float *x, const float *dy, float *dw, int32_t n,
                           const ag_conv2d_shape *shape, float alpha, float beta) {
    const ag_conv2d_shape *s = shape;
    const int32_t depth = s->c / s->groups, outputs = s->o / s->groups, filter = s->kh * s->kw * depth;
    if (is_gemm(s) && (n == 1 || s->x_n == s->h * s->x_h)) {
        ag_gemm_tn_f32_host(dy, s->ldy, x, s->x_w, dw, s->c, s->o, s->c, n * s->h * s->w, alpha, beta);
        return;
    }
    for (int32_t o = 0; o < s->o;) {
        const int32_t in_group = outputs - o % outputs, count = in_group < LANES ? in_group : LANES;
        const float *group = x + (ptrdiff_t)(o / outputs) * depth * s->x_c;
        for (int32_t first = 0; first < filter; first += TAP_TILE) {
            const int32_t taps = filter - first < TAP_TILE ? filter - first : TAP_TILE;
            tap_tile t;
            vec sum[TAP_TILE];
            float lanes[LANES];
            set_taps(&t, s, first, taps);
            if (taps > TAP_TILE / 2) {
                tap_sums(TAP_TILE, s, &t, group, dy + o, n, count, sum);
            } else if (taps > 1) {
                tap_sums(TAP_TILE / 2, s, &t, group, dy + o, n, count, sum);
            } else {
                tap_sums(1, s, &t, group, dy + o, n, count, sum);
            }
            for (int32_t i = 0; i < taps; i++) {
                float *dst = dw + (ptrdiff_t)o * filter + first + i;
                store(lanes, sum[i]);
                for (int32_t q = 0; q < count; q++, dst += filter) {
                    *dst = beta == 0.0f ? alpha * lanes[q] : alpha * lanes[q] + beta * *dst;
                }
            }
        }
        o += count;
    }
}
