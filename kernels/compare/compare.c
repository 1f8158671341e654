/* The gemm family of the backend BACKEND against `ref` on one core: over sizes, transpositions, alpha and
 * beta. All that a kernel must neither read nor write holds numbers so large that one of them in a sum is
 * seen. */
#include "ag_console.h"
#include "ag_kernels.h"
#include "ag_rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define KERNEL(name) NAMED(ag_##name, BACKEND)

enum { GUARD = 5, MOST = 1200 };
static const float PAD = -7.625e30f;

ag_gemm_nn_f32_fn KERNEL(gemm_nn_f32);
ag_gemm_nt_f32_fn KERNEL(gemm_nt_f32);
ag_gemm_tn_f32_fn KERNEL(gemm_tn_f32);
ag_gemv_f32_fn KERNEL(gemv_f32);
ag_gemv_t_f32_fn KERNEL(gemv_t_f32);
ag_ger_f32_fn KERNEL(ger_f32);

/* A matrix in a guarded buffer: rows of `columns` floats, `ld` apart. */
typedef struct {
    float buffer[MOST];
    int32_t rows, columns, ld;
} matrix;

static matrix a, b, mine, theirs;
static uint32_t cases, wrong;

static float *data(matrix *m) {
    return m->buffer + GUARD;
}

static void draw(matrix *m, int32_t rows, int32_t columns, int32_t slack, uint32_t key) {
    m->rows = rows;
    m->columns = columns;
    m->ld = columns + slack;
    for (int32_t i = 0; i < MOST; i++) {
        m->buffer[i] = PAD;
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < columns; j++) {
            data(m)[i * m->ld + j] = ag_uniformf(key, cases, (uint32_t)(i * columns + j), 1.0f);
        }
    }
}

static void poison(matrix *m) {
    for (int32_t i = 0; i < m->rows; i++) {
        for (int32_t j = 0; j < m->columns; j++) {
            data(m)[i * m->ld + j] = NAN;
        }
    }
}

/* Both results, guards included, up to the rounding of k products and the two scalings. */
static void compare(const char *name, int32_t k) {
    const float terms = (float)k + 3.0f, bound = 2.0f * terms * terms * 5.97e-8f;
    bool same = true;
    for (int32_t i = 0; i < MOST; i++) {
        const float x = mine.buffer[i], y = theirs.buffer[i];
        same = same && (x == y || fabsf(x - y) <= bound);
    }
    cases++;
    if (!same) {
        wrong++;
        ag_print(name);
        ag_print_i32(mine.rows, 5);
        ag_print_i32(mine.columns, 5);
        ag_print_i32(k, 5);
        ag_print(" differs\n");
    }
}

static void start(int32_t rows, int32_t columns, int32_t slack, float beta) {
    draw(&mine, rows, columns, slack, 3);
    if (beta == 0.0f) {
        poison(&mine);
    }
    theirs = mine;
}

static void gemm(const char *name, ag_gemm_f32_fn *f, ag_gemm_f32_fn *ref, bool ta, bool tb, int32_t m,
                 int32_t n, int32_t k, int32_t slack, float alpha, float beta) {
    draw(&a, ta ? k : m, ta ? m : k, slack, 1);
    draw(&b, tb ? n : k, tb ? k : n, slack, 2);
    start(m, n, slack, beta);
    f(data(&a), a.ld, data(&b), b.ld, data(&mine), mine.ld, m, n, k, alpha, beta);
    ref(data(&a), a.ld, data(&b), b.ld, data(&theirs), theirs.ld, m, n, k, alpha, beta);
    compare(name, k);
}

static void gemv(const char *name, ag_gemv_f32_fn *f, ag_gemv_f32_fn *ref, bool t, int32_t m, int32_t n,
                 int32_t slack, float alpha, float beta) {
    draw(&a, m, n, slack, 1);
    draw(&b, 1, t ? m : n, 0, 2);
    start(1, t ? n : m, 0, beta);
    f(data(&a), a.ld, data(&b), data(&mine), m, n, alpha, beta);
    ref(data(&a), a.ld, data(&b), data(&theirs), m, n, alpha, beta);
    compare(name, t ? m : n);
}

static void ger(int32_t m, int32_t n, int32_t slack, float alpha, float beta) {
    draw(&a, 1, m, 0, 1);
    draw(&b, 1, n, 0, 2);
    start(m, n, slack, beta);
    KERNEL(ger_f32)(data(&mine), mine.ld, data(&a), data(&b), m, n, alpha, beta);
    ag_ger_f32_ref(data(&theirs), theirs.ld, data(&a), data(&b), m, n, alpha, beta);
    compare("ger", 1);
}

static void all(int32_t m, int32_t n, int32_t k, int32_t slack, float alpha, float beta) {
    gemm("gemm_nn", KERNEL(gemm_nn_f32), ag_gemm_nn_f32_ref, false, false, m, n, k, slack, alpha, beta);
    gemm("gemm_nt", KERNEL(gemm_nt_f32), ag_gemm_nt_f32_ref, false, true, m, n, k, slack, alpha, beta);
    gemm("gemm_tn", KERNEL(gemm_tn_f32), ag_gemm_tn_f32_ref, true, false, m, n, k, slack, alpha, beta);
    gemv("gemv", KERNEL(gemv_f32), ag_gemv_f32_ref, false, m, n, slack, alpha, beta);
    gemv("gemv_t", KERNEL(gemv_t_f32), ag_gemv_t_f32_ref, true, m, n, slack, alpha, beta);
    ger(m, n, slack, alpha, beta);
}

int main(void) {
    static const struct {
        float alpha, beta;
    } scales[] = {{1.0f, 0.0f}, {-0.01f, 1.0f}, {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};
    static const int32_t sizes[][3] = {{1, 1, 1},    {1, 7, 1},   {5, 1, 3},  {2, 3, 4},
                                       {4, 4, 4},    {7, 5, 9},   {8, 16, 2}, {5, 17, 6},
                                       {13, 17, 11}, {10, 32, 1}, {3, 33, 7}, {6, 21, 16}};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (uint32_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            for (int32_t slack = 0; slack <= 3; slack += 3) {
                all(sizes[i][0], sizes[i][1], sizes[i][2], slack, scales[s].alpha, scales[s].beta);
            }
        }
    }
    for (int32_t m = 1; m <= 9; m++) {
        for (int32_t n = 1; n <= 20; n++) {
            all(m, n, (m + n) % 7 + 1, n % 3, 0.7f, (float)((m * n) % 3) * 0.5f);
        }
    }
    ag_print_u32(cases, 0);
    ag_print(" cases, ");
    ag_print_u32(wrong, 0);
    ag_print(" wrong\n");
    return wrong == 0 ? 0 : 1;
}
