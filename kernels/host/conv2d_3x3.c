/* Convolution with windows of 3 x 3 and its gradients by Winograd's minimal filtering, F(2 x 2, 3 x 3): 16
 * products for the 36 of four pixels.
 *
 *     x: blocks of 4 x 4, two apart         16 matrices, one for each element of a block
 *     +-----+-----+                         V[e]: blocks x channels      = B' x B
 *     | 0 +-|---+ |                         U[e]: channels x outputs     = G w G'
 *     |   | | 1 | |   -- transform -->      M[e]: blocks x outputs       = V[e] U[e]
 *     +---|-+   | |                         y:    2 x 2 pixels a block   = A' M A
 *         +-----+
 *
 *     B' = 1  0 -1  0     G = 1    0    0       A' = 1  1  1  0
 *          0  1  1  0         1/2  1/2  1/2          0  1 -1 -1
 *          0 -1  1  0         1/2 -1/2  1/2
 *          0  1  0 -1         0    0    1
 *
 * The gradient of x is a convolution of dy with the turned windows; the gradient of w is
 * G' (sum of (A dy A')' V) G.
 */
#include "ag_kernels.h"
#include "ag_shapes.h"
#include "tiles/epilogue.h"
#include "tiles/microkernel.h"
#include "tiles/vectors.h"

ag_conv2d_f32_fn ag_conv2d_3x3_f32_host;
ag_conv2d_dx_f32_fn ag_conv2d_3x3_dx_f32_host;
ag_conv2d_dw_f32_fn ag_conv2d_3x3_dw_f32_host;

enum {
    SIDE = 4, /* of a block */
    ELEMENTS = SIDE * SIDE,
    PANEL = AG_TILE_N, /* columns of a matrix that are computed at a time */
    CHANNELS = 128,    /* that a matrix may have (kernels.toml) */
    GAP = 16, /* floats between two matrices, as their rows would fall on the same lines of a cache */
    WINDOWS = ELEMENTS *
        (CHANNELS * PANEL + 8 * GAP), /* floats of U that are used at a time: 130 KB with AVX */
    VECTORS = PANEL / LANES,
};

/* Images of rows x columns pixels, of `channels` channels, and the distances from one to the next. */
typedef struct {
    ptrdiff_t image, row, pixel;
    int32_t rows, columns, channels;
} layout;

/* Blocks of one or several images, numbered row by row. The first pixel of block (i, j) is (2 i - top, 2 j -
 * left). */
typedef struct {
    int32_t across, down, top, left;
} grid;

static const float zeros[CHANNELS];

/* Sixteen matrices of `rows` rows. */
typedef struct {
    float *data;
    ptrdiff_t matrix, row;
} matrices;

static matrices matrices_at(float *data, int32_t rows, int32_t columns) {
    const int32_t row = (columns + LANES - 1) / LANES * LANES;
    return (matrices){data, (ptrdiff_t)rows * row + GAP, row};
}

/* Stores a row of a block, v[0 .. 3], times B, or with `gradient` a row of dy, v[0 .. 1], times A'. */
ALWAYS_INLINE void put_row(bool gradient, float *dst, ptrdiff_t matrix, const vec v[SIDE]) {
    if (gradient) {
        store(dst, v[0]);
        store(dst + matrix, v[0] + v[1]);
        store(dst + 2 * matrix, v[0] - v[1]);
        store(dst + 3 * matrix, zero() - v[1]);
    } else {
        store(dst, v[0] - v[2]);
        store(dst + matrix, v[1] + v[2]);
        store(dst + 2 * matrix, v[2] - v[1]);
        store(dst + 3 * matrix, v[1] - v[3]);
    }
}

/* Where the pixels of a block are: (i, j) is at data + i * row + j * step, or, of a block that is in part
 * outside of the image, at pixel[i * side + j]. */
typedef struct {
    const float *data;
    ptrdiff_t row, step;
    const float *pixel[ELEMENTS];
} block_pixels;

ALWAYS_INLINE vec pixel_at(bool edge, const block_pixels *p, int32_t i, int32_t j, int32_t side, int32_t k,
                           bool part, lane_mask mask) {
    return get(part, (edge ? p->pixel[i * side + j] : p->data + i * p->row + j * p->step) + k, mask);
}

/* One block of V, or with `gradient` of A dy A', for `channels` channels. Pixels are loaded for each row of
 * the result, as the registers do not hold all. */
ALWAYS_INLINE void transform_block(bool gradient, bool edge, const matrices *to, float *dst,
                                   const block_pixels *p, int32_t channels) {
    const int32_t side = gradient ? 2 : SIDE;
    for (int32_t k = 0; k < channels; k += LANES, dst += LANES) {
        const bool part = channels - k < LANES;
        const lane_mask mask = first_lanes(part ? channels - k : LANES);
        EACH (i, SIDE) {
            static const int32_t first[] = {0, 1, 2, 1}, second[] = {2, 2, 1, 3};
            vec v[SIDE];
            EACH (j, side) {
                const vec x = pixel_at(edge, p, gradient ? 0 : first[i], j, side, k, part, mask);
                const vec y = pixel_at(edge, p, gradient ? 1 : second[i], j, side, k, part, mask);
                if (gradient) {
                    v[j] = i == 0 ? x : i == 1 ? x + y : i == 2 ? x - y : zero() - y;
                } else {
                    v[j] = i == 1 ? x + y : x - y;
                }
            }
            put_row(gradient, dst + (ptrdiff_t)(i * SIDE) * to->matrix, to->matrix, v);
        }
    }
}

/* The rows of V, or with `gradient` of A dy A', of `count` blocks from `first` on, and channels from `from`
 * on. */
ALWAYS_INLINE void transform_blocks(bool gradient, const matrices *to, const float *x, const layout *s,
                                    const grid *g, int32_t first, int32_t count, int32_t from,
                                    int32_t channels) {
    const int32_t side = gradient ? 2 : SIDE;
    const int32_t block_row = first / g->across;
    int32_t image = block_row / g->down, i = block_row - image * g->down, j = first - block_row * g->across;
    float *dst = to->data;
    block_pixels p = {.row = s->row, .step = s->pixel};
    for (; count > 0; count--, dst += to->row) {
        const int32_t row = 2 * i - g->top, column = 2 * j - g->left;
        p.data = x + image * s->image + row * s->row + column * s->pixel + from;
        if (row >= 0 && row + side <= s->rows && column >= 0 && column + side <= s->columns) {
            transform_block(gradient, false, to, dst, &p, channels);
        } else {
            EACH (e, side * side) {
                const int32_t r = row + e / side, c = column + e % side;
                const bool inside = r >= 0 && r < s->rows && c >= 0 && c < s->columns;
                p.pixel[e] = inside
                                 ? p.data + (ptrdiff_t)(e / side) * s->row + (ptrdiff_t)(e % side) * s->pixel
                                 : zeros;
            }
            transform_block(gradient, true, to, dst, &p, channels);
        }
        if (++j == g->across) {
            j = 0;
            if (++i == g->down) {
                i = 0;
                image++;
            }
        }
    }
}

/* U of `rows` channels and up to PANEL outputs: element (i, j) of a window is at w + (i * 3 + j) * tap, its
 * channels are `row` apart. */
static void transform_windows(const matrices *to, const float *w, ptrdiff_t tap, ptrdiff_t row, int32_t rows,
                              int32_t columns) {
    const vec half = splat(0.5f);
    for (int32_t r = 0; r < rows; r++, w += row) {
        for (int32_t k = 0; k < columns; k += LANES) {
            const lane_mask mask = first_lanes(ag_min(columns - k, LANES));
            float *dst = to->data + r * to->row + k;
            vec left[SIDE][3];
            EACH (j, 3) {
                const vec a = load_masked(w + j * tap + k, mask),
                          b = load_masked(w + (3 + j) * tap + k, mask);
                const vec c = load_masked(w + (6 + j) * tap + k, mask);
                left[0][j] = a, left[1][j] = half * (a + b + c), left[2][j] = half * (a - b + c),
                left[3][j] = c;
            }
            EACH (i, SIDE) {
                const vec a = left[i][0], b = left[i][1], c = left[i][2];
                store(dst + (ptrdiff_t)(i * SIDE + 0) * to->matrix, a);
                store(dst + (ptrdiff_t)(i * SIDE + 1) * to->matrix, half * (a + b + c));
                store(dst + (ptrdiff_t)(i * SIDE + 2) * to->matrix, half * (a - b + c));
                store(dst + (ptrdiff_t)(i * SIDE + 3) * to->matrix, c);
            }
        }
    }
}

/* The same of windows that are rows of w: channels are adjacent. */
static void pack_windows(const matrices *to, const float *w, ptrdiff_t filter, int32_t rows,
                         int32_t columns) {
    enum { AT_A_TIME = 32, TAP = AT_A_TIME * PANEL };
    float packed[9 * TAP];
    matrices part = *to;
    for (int32_t k = 0, count; k < rows; k += count, part.data += count * to->row) {
        count = ag_min(rows - k, AT_A_TIME);
        for (int32_t tap = 0; tap < 9; tap++) {
            ag_pack_columns(packed + (ptrdiff_t)tap * TAP, w + (ptrdiff_t)tap * rows + k, filter, count,
                            columns);
        }
        transform_windows(&part, packed, TAP, PANEL, count, columns);
    }
}

/* y = A' M A of `count` blocks from `first` on. */
static void store_blocks(float *results, const layout *d, const matrices *m, const grid *g, int32_t first,
                         int32_t count, int32_t channels) {
    const int32_t block_row = first / g->across;
    int32_t image = block_row / g->down, i = 2 * (block_row - image * g->down),
            j = 2 * (first - block_row * g->across);
    for (int32_t b = 0; b < count; b++) {
        const float *src = m->data + b * m->row;
        float *y = results + image * d->image + i * d->row + j * d->pixel;
        for (int32_t k = 0; k < channels; k += LANES) {
            const lane_mask mask = first_lanes(ag_min(channels - k, LANES));
            vec sum[2][SIDE];
            EACH (e, SIDE) {
                const float *column = src + k + e * m->matrix;
                const vec b0 = load(column), b1 = load(column + (ptrdiff_t)SIDE * m->matrix);
                const vec b2 = load(column + (ptrdiff_t)(2 * SIDE) * m->matrix),
                          b3 = load(column + (ptrdiff_t)(3 * SIDE) * m->matrix);
                sum[0][e] = b0 + b1 + b2, sum[1][e] = b1 - b2 - b3;
            }
            EACH (p, 2) {
                if (i + p < d->rows) {
                    float *dst = y + p * d->row + k;
                    store_masked(dst, sum[p][0] + sum[p][1] + sum[p][2], mask);
                    if (j + 1 < d->columns) {
                        store_masked(dst + d->pixel, sum[p][1] - sum[p][2] - sum[p][3], mask);
                    }
                }
            }
        }
        j += 2;
        if (j >= d->columns) {
            j = 0;
            i += 2;
            if (i >= d->rows) {
                i = 0;
                image++;
            }
        }
    }
}

/* C[e] = A[e] B[e] for all elements, or the sum of it and C[e] where beta is 1; `a_row` and `a_step` from row
 * to row of C, and from product to product. */
static void multiply(ag_microkernel_fn *tiles, const matrices *a, ptrdiff_t a_row, ptrdiff_t a_step,
                     const matrices *b, const matrices *c, int32_t m, int32_t n, int32_t k, float beta) {
    ag_tile t = {.k = k, .k_runs = 1, .alpha = 1.0f, .beta = beta, .rows = m, .columns = n};
    t.a_row = ag_bytes(a_row);
    t.a_step = ag_bytes(a_step);
    t.b_step = ag_bytes(b->row);
    t.c_step = ag_bytes(c->row);
    ag_set_blocks(&t, 1, 0, 0);
    for (int32_t e = 0; e < ELEMENTS; e++) {
        t.a[0] = a->data + e * a->matrix;
        t.b[0] = b->data + e * b->matrix;
        t.c = c->data + e * c->matrix;
        tiles(&t);
    }
}

/* The windows that filter x. If `packed`, a row of w is the window of an output, and is packed; otherwise a
 * row of w is the window of an input. */
typedef struct {
    const float *w;
    ptrdiff_t filter;
    int32_t outputs;
    bool packed;
} windows;

static int32_t whole_vectors(int32_t channels) {
    return (channels + LANES - 1) / LANES * LANES;
}

/* `rows` rows of M for all elements, of `vectors` vectors; both are constants. */
ALWAYS_INLINE void multiply_tile(int32_t rows, int32_t vectors, const matrices *v, const matrices *u,
                                 const matrices *m, int32_t depth) {
    const ptrdiff_t row = v->row;
    for (int32_t e = 0; e < ELEMENTS; e++) {
        const float *a = v->data + e * v->matrix, *b = u->data + e * u->matrix;
        float *c = m->data + e * m->matrix;
        vec sum[AG_TILE_M * VECTORS];
        for (int32_t i = 0; i < rows * vectors; i++) {
            sum[i] = zero();
        }
        for (const float *const end = a + depth; a < end; a++, b += PANEL) {
            vec right[VECTORS];
            for (int32_t j = 0; j < vectors; j++) {
                right[j] = load(b + (ptrdiff_t)j * LANES);
            }
            for (int32_t i = 0; i < rows * vectors; i++) {
                sum[i] += splat(a[i / vectors * row]) * right[i % vectors];
            }
        }
        for (int32_t i = 0; i < rows * vectors; i++) {
            store(c + i / vectors * m->row + (ptrdiff_t)(i % vectors) * LANES, sum[i]);
        }
    }
}

/* The same for `count` rows and `columns` columns. Further rows, up to the next size of a tile, are products
 * of the numbers that V had before. */
static void multiply_rows(int32_t count, int32_t columns, const matrices *v, const matrices *u,
                          const matrices *m, int32_t depth) {
    if (columns <= LANES) {
        multiply_tile(AG_TILE_M, 1, v, u, m, depth);
        return;
    }
    if (AG_TILE_M > 4 && count > 4) {
        multiply_tile(AG_TILE_M, VECTORS, v, u, m, depth);
        return;
    }
    multiply_tile(4, VECTORS, v, u, m, depth);
}

/* y of all images. */
static void filtered(const float *x, const layout *s, const windows *w, float *y, const layout *d, int32_t n,
                     int32_t top, int32_t left) {
    const grid g = {(d->columns + 1) / 2, (d->rows + 1) / 2, top, left};
    const int32_t k = s->channels, total = n * g.across * g.down;
    float u_data[WINDOWS], v_data[ELEMENTS * (AG_TILE_M * CHANNELS + GAP)];
    float m_data[ELEMENTS * (AG_TILE_M * PANEL + GAP)];
    matrices u = matrices_at(u_data, k, PANEL);
    const matrices v = matrices_at(v_data, AG_TILE_M, k), m = matrices_at(m_data, AG_TILE_M, PANEL);
    const int32_t panel = ELEMENTS * (int32_t)u.matrix, most = WINDOWS / panel;
    for (int32_t o = 0, end; o < w->outputs; o = end) {
        end = ag_min(w->outputs, o + most * PANEL);
        u.data = u_data;
        for (int32_t p = o; p < end; p += PANEL, u.data += panel) {
            const int32_t columns = ag_min(w->outputs - p, PANEL);
            if (w->packed) {
                pack_windows(&u, w->w + p * w->filter, w->filter, k, columns);
            } else { /* turned: the last element is the first one */
                transform_windows(&u, w->w + p + (ptrdiff_t)8 * w->outputs, -w->outputs, w->filter, k,
                                  columns);
            }
        }
        for (int32_t b = 0; b < total; b += AG_TILE_M) {
            const int32_t count = ag_min(total - b, AG_TILE_M);
            transform_blocks(false, &v, x, s, &g, b, count, 0, k);
            u.data = u_data;
            for (int32_t p = o; p < end; p += PANEL, u.data += panel) {
                const int32_t columns = ag_min(w->outputs - p, PANEL);
                multiply_rows(count, columns, &v, &u, &m, k);
                store_blocks(y + p, d, &m, &g, b, count, columns);
            }
        }
    }
}

static layout image_of(const ag_conv2d_shape *s) {
    return (layout){s->x_n, s->x_h, s->x_w, s->h, s->w, s->c};
}

static layout results_of(const ag_conv2d_shape *s) {
    const ptrdiff_t row = (ptrdiff_t)s->ow * s->ldy;
    return (layout){s->oh * row, row, s->ldy, s->oh, s->ow, s->o};
}

void ag_conv2d_3x3_f32_host(const float *x, const float *w, float *y, int32_t n, void *scratch,
                            const ag_conv2d_shape *shape, const ag_epilogue *epilogue) {
    (void)scratch;
    const layout from = image_of(shape), to = results_of(shape);
    const windows by = {w, (ptrdiff_t)9 * shape->c, shape->o, true};
    filtered(x, &from, &by, y, &to, n, shape->pad_top, shape->pad_left);
    AG_FINISH(epilogue, y, shape->ldy, n * shape->oh * shape->ow, shape->o);
}

void ag_conv2d_3x3_dx_f32_host(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                               const ag_conv2d_shape *shape) {
    (void)scratch;
    const layout from = results_of(shape), to = image_of(shape);
    const windows by = {w, (ptrdiff_t)9 * shape->c, shape->c, false};
    filtered(dy, &from, &by, dx, &to, n, 2 - shape->pad_top, 2 - shape->pad_left);
}

/* dw = alpha * G' sums G + beta * dw of the windows of `outputs` rows and `channels` columns. */
static void store_windows(float *dw, ptrdiff_t filter, ptrdiff_t tap, const matrices *sums, int32_t outputs,
                          int32_t channels, float alpha, float beta) {
    const vec half = splat(0.5f);
    for (int32_t o = 0; o < outputs; o++, dw += filter) {
        for (int32_t k = 0; k < channels; k += LANES) {
            const float *src = sums->data + o * sums->row + k;
            const bool part = channels - k < LANES;
            const lane_mask mask = first_lanes(part ? channels - k : LANES);
            vec left[3][SIDE];
            EACH (e, SIDE) {
                const float *column = src + e * sums->matrix;
                const vec a = load(column), d = load(column + (ptrdiff_t)(3 * SIDE) * sums->matrix);
                const vec b = half * load(column + (ptrdiff_t)SIDE * sums->matrix),
                          c = half * load(column + (ptrdiff_t)(2 * SIDE) * sums->matrix);
                left[0][e] = a + b + c, left[1][e] = b - c, left[2][e] = b + c + d;
            }
            EACH (i, 3) {
                const vec b = half * left[i][1], c = half * left[i][2];
                float *dst = dw + (ptrdiff_t)(3 * i) * tap + k;
                ag_scale_add(part, mask, dst, left[i][0] + b + c, alpha, beta);
                ag_scale_add(part, mask, dst + tap, b - c, alpha, beta);
                ag_scale_add(part, mask, dst + 2 * tap, b + c + left[i][3], alpha, beta);
            }
        }
    }
}

void ag_conv2d_3x3_dw_f32_host(const float *x, const float *dy, float *dw, int32_t n,
                               const ag_conv2d_shape *shape, float alpha, float beta) {
    enum { WIDTH = 32, BLOCKS = 48 }; /* channels, outputs and blocks at a time */
    const layout from = image_of(shape), gradient = results_of(shape);
    const grid g = {(shape->ow + 1) / 2, (shape->oh + 1) / 2, shape->pad_top, shape->pad_left};
    const grid results = {g.across, g.down, 0, 0};
    const int32_t total = n * g.across * g.down;
    float v_data[ELEMENTS * (BLOCKS * WIDTH + GAP)], y_data[ELEMENTS * (BLOCKS * WIDTH + GAP)];
    float s_data[ELEMENTS * (WIDTH * WIDTH + GAP)];
    for (int32_t o = 0; o < shape->o; o += WIDTH) {
        for (int32_t c = 0; c < shape->c; c += WIDTH) {
            const int32_t rows = ag_min(shape->o - o, WIDTH), columns = ag_min(shape->c - c, WIDTH);
            const matrices v = matrices_at(v_data, BLOCKS, columns), y = matrices_at(y_data, BLOCKS, rows);
            const matrices sums = matrices_at(s_data, rows, columns);
            for (int32_t b = 0; b < total; b += BLOCKS) {
                const int32_t count = ag_min(total - b, BLOCKS);
                transform_blocks(false, &v, x, &from, &g, b, count, c, columns);
                transform_blocks(true, &y, dy, &gradient, &results, b, count, o, rows);
                multiply(AG_MICROKERNEL(tn), &y, 1, y.row, &v, &sums, rows, whole_vectors(columns), count,
                         b > 0 ? 1.0f : 0.0f);
            }
            store_windows(dw + (ptrdiff_t)o * 9 * shape->c + c, (ptrdiff_t)9 * shape->c, shape->c, &sums,
                          rows, columns, alpha, beta);
        }
    }
}
