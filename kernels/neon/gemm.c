/* The gemm family with the widest tile that fits the registers; few columns use the 4 x 4 micro-kernels, few
 * rows use gemv. */
#include "ag_kernels.h"
#include "tiles/epilogue.h"
#include "tiles/local_tile.h"
#include "tiles/vectors.h"

#include <stdbool.h>

enum { M = AG_TILE_M, N = AG_TILE_N, PACKED_K = 64 }; /* 4 KB of stack in AArch64, 2 KB in AArch32 */

/* One column of tiles: element [i, p] of A is at a + i * a_i + ..., C has `ldc`. */
typedef struct {
    ag_microkernel_fn *microkernel;
    const float *a;
    ptrdiff_t a_i, ldc;
    int32_t m;
    float beta;
} panel;

static inline void set_rows(ag_tile *t, const float *a, ptrdiff_t a_i) {
    t->a[0] = a;
    t->a[1] = a + a_i;
    t->a[2] = t->a[1] + a_i;
    t->a[3] = t->a[2] + a_i;
}

/* All tiles of N columns of C; B is set. */
static void tiles(const panel *p, ag_tile *t, float *c, int32_t column_overlap) {
    const float *a = p->a;
    float *dst = c;
    int32_t i = 0;
    t->c_step = ag_bytes(p->ldc);
    t->beta = p->beta;
    for (; column_overlap == 0 && i + M <= p->m; i += M, a += M * p->a_i, dst += M * p->ldc) {
        if (p->microkernel == AG_MICROKERNEL(tn)) {
            t->a[0] = a;
        } else {
            set_rows(t, a, p->a_i);
        }
        t->c = dst;
        p->microkernel(t);
    }
    for (; i < p->m; i += M) {
        const int32_t overlap = i + M > p->m ? i + M - p->m : 0, row = i - overlap;
        set_rows(t, p->a + row * p->a_i, p->a_i);
        ag_local_tile(p->microkernel, t, c + row * p->ldc, p->ldc, 1, overlap, column_overlap, N, p->beta);
    }
}

static inline int32_t overlap_at(int32_t j, int32_t n) {
    return j + N > n ? j + N - n : 0;
}

/* Columns of B are contiguous along n. */
static void gemm_n(const panel *p, ag_tile *t, const float *b, float *c, int32_t n) {
    for (int32_t j = 0; j < n; j += N) {
        const int32_t overlap = overlap_at(j, n);
        t->b[0] = b + j - overlap;
        tiles(p, t, c + j - overlap, overlap);
    }
}

static ag_tile tile_of(int32_t k, ptrdiff_t a_p, ptrdiff_t b_p, float alpha) {
    ag_tile t;
    t.k = k;
    t.k_runs = 1;
    t.alpha = alpha;
    t.a_step = ag_bytes(a_p);
    t.b_step = ag_bytes(b_p);
    return t;
}

void ag_gemm_nn_f32_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    if (m < M) {
        for (int32_t i = 0; i < m; i++) {
            ag_gemv_t_f32_neon(b, ldb, a + (ptrdiff_t)i * lda, c + (ptrdiff_t)i * ldc, k, n, alpha, beta,
                               NULL);
        }
        AG_FINISH(epilogue, c, ldc, m, n);
    } else if (n < N) {
        ag_gemm_nn_f32_small_neon(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
    } else {
        const panel p = {AG_MICROKERNEL(nn), a, lda, ldc, m, beta};
        ag_tile t = tile_of(k, 1, ldb, alpha);
        gemm_n(&p, &t, b, c, n);
        AG_FINISH(epilogue, c, ldc, m, n);
    }
}

void ag_gemm_tn_f32_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    if (m < M || n < N) {
        ag_gemm_tn_f32_small_neon(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
    } else {
        const panel p = {AG_MICROKERNEL(tn), a, 1, ldc, m, beta};
        ag_tile t = tile_of(k, lda, ldb, alpha);
        gemm_n(&p, &t, b, c, n);
        AG_FINISH(epilogue, c, ldc, m, n);
    }
}

/* packed[p][j] = element p of row j, of N rows. */
static void pack(float *packed, const float *b, ptrdiff_t ldb, int32_t k) {
    for (int32_t j = 0; j < N; j += LANES, b += LANES * ldb, packed += LANES) {
        int32_t p = 0;
        for (; p + LANES <= k; p += LANES) {
            vec v[LANES];
            EACH (i, LANES) {
                v[i] = load(b + i * ldb + p);
            }
            transpose(v);
            EACH (i, LANES) {
                store(packed + (ptrdiff_t)(p + i) * N, v[i]);
            }
        }
        for (; p < k; p++) {
            const float *rows[LANES] = {b + p, b + ldb + p, b + 2 * ldb + p, b + 3 * ldb + p};
            store(packed + (ptrdiff_t)p * N, next_gathered(rows));
        }
    }
}

void ag_gemm_nt_f32_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    if (m < M) {
        for (int32_t i = 0; i < m; i++) {
            ag_gemv_f32_neon(b, ldb, a + (ptrdiff_t)i * lda, c + (ptrdiff_t)i * ldc, n, k, alpha, beta, NULL);
        }
        AG_FINISH(epilogue, c, ldc, m, n);
        return;
    }
    if (n < N) {
        ag_gemm_nt_f32_small_neon(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
        return;
    }
    const bool packed = m >= 2 * M && k <= PACKED_K;
    const panel p = {packed ? AG_MICROKERNEL(nn) : AG_MICROKERNEL(nt), a, lda, ldc, m, beta};
    ag_tile t = tile_of(k, 1, N, alpha);
    float buffer[PACKED_K * N];
    for (int32_t j = 0; j < n; j += N) {
        const int32_t overlap = overlap_at(j, n);
        const float *row = b + (j - overlap) * (ptrdiff_t)ldb;
        if (packed) {
            pack(buffer, row, ldb, k);
            t.b[0] = buffer;
        } else {
            for (int32_t q = 0; q < N; q++, row += ldb) {
                t.b[q] = row;
            }
        }
        tiles(&p, &t, c + j - overlap, overlap);
    }
    AG_FINISH(epilogue, c, ldc, m, n);
}

void ag_gemm_tt_f32_neon(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                         int32_t m, int32_t n, int32_t k, float alpha, float beta,
                         const ag_epilogue *epilogue) {
    ag_gemm_tt_f32_small_neon(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
}
