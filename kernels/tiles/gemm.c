/* The gemm family over micro-kernel tiles (microkernel.h).
 *
 *             n                          full tiles are written to C by the micro-kernel;
 *       +----+----+--+                   an edge tile is shifted back inside the matrix, so that it
 *     m | t0 | t1 |e2|                   overlaps its neighbour, is computed into a local array, and
 *       +----+----+--+                   only its new rows and columns are stored;
 *       | e3 | e4 |e5|                   a matrix with fewer rows repeats the first one, or with A
 *       +----+----+--+                   transposed becomes one with fewer columns; one with fewer
 *                                        columns uses narrower tiles (AG_NARROW_TILES), or rows of B that are
 *                                        packed with zeros after them; with fewer of both, scalar loops
 *
 * A' B' is the transpose of B A: all its tiles are computed into a local array, whose columns are rows of C.
 *
 * With AG_PACKED_K (schedules.h), rows of B of at most so many elements are packed first: they become
 * columns. */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/local_tile.h"
#include "tiles/vectors.h"

#include <stdbool.h>
#include <stddef.h>

/* The instance with narrower tiles, where the backend has AG_NARROW_TILES. */
ag_gemm_f32_fn AG_SYMBOL(gemm_nn_f32_small), AG_SYMBOL(gemm_nt_f32_small), AG_SYMBOL(gemm_tn_f32_small),
    AG_SYMBOL(gemm_tt_f32_small);

/* An operand as the micro-kernels read it: element [i, p] at data + i * i_step + p * p_step; one of the two
 * steps is 1. */
typedef struct {
    const float *data;
    ptrdiff_t i_step, p_step;
} ag_operand;

/* The result: element [i, j] at data + i * i_step + j * j_step; one of the two steps is 1. */
typedef struct {
    float *data;
    ptrdiff_t i_step, j_step;
} ag_result;

/* C[m,n] = alpha * the sums of k products + beta * C */
typedef struct {
    ag_microkernel_fn *kernel;
    ag_operand a, b;
    ag_result c;
    int32_t m, n, k;
    float alpha, beta;
    bool a_columns; /* the kernel reads columns of A, those from a[0] on */
} ag_product;

static void ag_gemm_scalar(const ag_product *t) {
    for (int32_t i = 0; i < t->m; i++) {
        for (int32_t j = 0; j < t->n; j++) {
            const float *a = t->a.data + i * t->a.i_step, *b = t->b.data + j * t->b.i_step;
            float sum = 0.0f, *dst = t->c.data + i * t->c.i_step + j * t->c.j_step;
            for (int32_t p = 0; p < t->k; p++, a += t->a.p_step, b += t->b.p_step) {
                sum += *a * *b;
            }
            *dst = t->beta == 0.0f ? t->alpha * sum : t->alpha * sum + t->beta * *dst;
        }
    }
}

/* A tile; only its rows i0 and columns j0 and up are stored. */
static AG_NOINLINE void ag_cut_tile(ag_microkernel_fn *kernel, ag_tile *t, float *c, ptrdiff_t i_step,
                                    ptrdiff_t j_step, int32_t i0, int32_t j0, float beta) {
    ag_local_tile(kernel, t, c, i_step, j_step, i0, j0, AG_TILE_N, beta);
}

/* `rows` rows from row i on: whole tiles, or fewer rows than a tile has, which are its last ones: the others
 * are computed again and not stored; where row i is the first of all, they repeat it. */
static void ag_gemm_rows(const ag_product *p, int32_t i, int32_t rows) {
    const ptrdiff_t a_i = p->a.i_step, c_i = p->c.i_step, c_j = p->c.j_step;
    const int32_t overlap = rows < AG_TILE_M ? AG_TILE_M - rows : 0, repeated = i < overlap ? overlap : 0;
    ag_microkernel_fn *kernel = p->kernel;
    ag_tile t;
    t.k = p->k;
    t.k_runs = 1;
    t.alpha = p->alpha;
    t.a_step = ag_bytes(p->a.p_step);
    t.b_step = ag_bytes(p->b.p_step);
    float packed[AG_PACKED_K > 0 ? AG_PACKED_K * AG_TILE_N : 1];
    const bool packs =
        AG_PACKED_K > 0 && kernel == AG_MICROKERNEL(nt) && rows >= 2 * AG_TILE_M && p->k <= AG_PACKED_K;
    if (packs) {
        kernel = AG_MICROKERNEL(nn);
        t.b_step = ag_bytes(AG_TILE_N);
    }
    for (int32_t j = 0, width; j < p->n; j += width) {
        const int32_t column_overlap = j + AG_TILE_N > p->n ? j + AG_TILE_N - p->n : 0;
        const bool whole = overlap == 0 && column_overlap == 0 && c_j == 1;
        const float *a = p->a.data + (repeated > 0 ? 0 : i - overlap) * a_i;
        const float *b = p->b.data + (j - column_overlap) * p->b.i_step;
        float *c = p->c.data + i * c_i + j * c_j;
        width = ag_set_columns(&t, kernel, whole ? p->n - j : AG_TILE_N, b, p->b.i_step, AG_TILE_N);
        if (packs) {
            ag_pack_columns(packed, b, p->b.i_step, p->k, AG_TILE_N);
            t.b[0] = packed;
        }
        t.c_step = ag_bytes(c_i);
        t.beta = p->beta;
        for (int32_t left = rows; left > 0; left -= AG_TILE_M) {
            t.a[0] = a;
            for (int32_t q = 1; !p->a_columns && q < AG_TILE_M; q++) {
                t.a[q] = t.a[q - 1] + (q > repeated ? a_i : 0);
            }
            if (whole) {
                t.c = c;
                kernel(&t);
            } else {
                ag_cut_tile(kernel, &t, c, c_i, c_j, overlap, column_overlap, p->beta);
            }
            a += AG_TILE_M * a_i;
            c += AG_TILE_M * c_i;
        }
    }
}

enum { AG_PADDED_ROWS = 16 }; /* of B at a time: 256 bytes of stack for tiles of four columns */

/* Fewer columns than a tile has, and at least as many rows: rows of B are packed, with zeros for the other
 * columns. */
static AG_NOINLINE void ag_gemm_few_columns(const ag_product *p) {
    float packed[AG_PADDED_ROWS * AG_TILE_N] = {0.0f};
    ag_tile t;
    t.k_runs = 1;
    t.alpha = p->alpha;
    t.a_step = ag_bytes(p->a.p_step);
    t.b_step = ag_bytes(AG_TILE_N);
    t.b[0] = packed;
    ag_one_tile(&t);
    for (int32_t from = 0; from < p->k; from += t.k) {
        t.k = p->k - from < AG_PADDED_ROWS ? p->k - from : AG_PADDED_ROWS;
        for (int32_t j = 0; j < p->n; j++) {
            const float *column = p->b.data + from * p->b.p_step + j * p->b.i_step;
            for (int32_t k = 0; k < t.k; k++, column += p->b.p_step) {
                packed[k * AG_TILE_N + j] = *column;
            }
        }
        for (int32_t i = 0; i < p->m; i += AG_TILE_M) {
            const int32_t overlap = i + AG_TILE_M > p->m ? i + AG_TILE_M - p->m : 0;
            t.a[0] = p->a.data + from * p->a.p_step + (i - overlap) * p->a.i_step;
            for (int32_t q = 1; !p->a_columns && q < AG_TILE_M; q++) {
                t.a[q] = t.a[q - 1] + p->a.i_step;
            }
            ag_local_tile(p->a_columns ? AG_MICROKERNEL(tn) : AG_MICROKERNEL(nn), &t,
                          p->c.data + i * p->c.i_step, p->c.i_step, p->c.j_step, overlap, 0, p->n,
                          from == 0 ? p->beta : 1.0f);
        }
    }
}

static void ag_gemm_tiled(const ag_product *p) {
    const int32_t rest = p->m % AG_TILE_M;
    const bool few_rows = p->m < AG_TILE_M, few_columns = p->n < AG_TILE_N;
    if (few_columns && !few_rows) {
        ag_gemm_few_columns(p);
        return;
    }
    if (p->a_columns && few_rows && p->n >= AG_TILE_M) { /* the transpose of A' B is B' A */
        const ag_product swapped = {p->kernel, p->b, p->a, {p->c.data, p->c.j_step, p->c.i_step},
                                    p->n,      p->m, p->k, p->alpha,
                                    p->beta,   true};
        ag_gemm_few_columns(&swapped);
        return;
    }
    if (few_columns || (p->a_columns && few_rows)) {
        ag_gemm_scalar(p);
        return;
    }
    ag_gemm_rows(p, 0, p->m - rest);
    if (rest > 0) {
        ag_gemm_rows(p, p->m - rest, rest);
    }
}

void AG_SYMBOL(gemm_nn_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    if (AG_NARROW_TILES && n < AG_TILE_N) {
        AG_SYMBOL(gemm_nn_f32_small)(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, NULL);
    } else {
        const ag_product p = {
            AG_MICROKERNEL(nn), {a, lda, 1}, {b, 1, ldb}, {c, ldc, 1}, m, n, k, alpha, beta, false};
        ag_gemm_tiled(&p);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_nt_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    if (AG_NARROW_TILES && n < AG_TILE_N) {
        AG_SYMBOL(gemm_nt_f32_small)(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, NULL);
    } else {
        const ag_product p = {
            AG_MICROKERNEL(nt), {a, lda, 1}, {b, ldb, 1}, {c, ldc, 1}, m, n, k, alpha, beta, false};
        ag_gemm_tiled(&p);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_tn_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    if (AG_NARROW_TILES && (m < AG_TILE_M || n < AG_TILE_N)) {
        AG_SYMBOL(gemm_tn_f32_small)(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, NULL);
    } else {
        const ag_product p = {
            AG_MICROKERNEL(tn), {a, 1, lda}, {b, 1, ldb}, {c, ldc, 1}, m, n, k, alpha, beta, true};
        ag_gemm_tiled(&p);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void AG_SYMBOL(gemm_tt_f32)(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue) {
    if (AG_NARROW_TILES) { /* a tile is stored element by element */
        AG_SYMBOL(gemm_tt_f32_small)(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, NULL);
    } else {
        const ag_product p = {
            AG_MICROKERNEL(nn), {b, ldb, 1}, {a, 1, lda}, {c, 1, ldc}, n, m, k, alpha, beta, false};
        ag_gemm_tiled(&p);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}
