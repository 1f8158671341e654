/* The four micro-kernels, one product at a time. */
#include "tiles/microkernel.h"

typedef enum { ROWS, COLUMNS, GATHERED } kind;

static const float *operand(const float *const *rows, kind how, int32_t i, int32_t offset) {
    const float *first = how == COLUMNS ? rows[0] + i : rows[i];
    return (const float *)(const void *)((const char *)first + offset);
}

static void microkernel(const ag_tile *t, kind a, kind b) {
    const int32_t a_step = a == ROWS ? 4 : t->a_step, b_step = b == ROWS ? 4 : t->b_step;
    float sums[AG_TILE_M][AG_TILE_N] = {{0.0f}};
    int32_t a_offset = 0, b_offset = 0;
    for (int32_t run = 0; run < t->k_runs; run++) {
        for (int32_t k = 0; k < t->k; k++, a_offset += a_step, b_offset += b_step) {
            for (int32_t i = 0; i < AG_TILE_M; i++) {
                for (int32_t j = 0; j < AG_TILE_N; j++) {
                    sums[i][j] += *operand(t->a, a, i, a_offset) * *operand(t->b, b, j, b_offset);
                }
            }
        }
        a_offset += t->a_skip;
        b_offset += t->b_skip;
    }
    for (int32_t i = 0; i < AG_TILE_M; i++) {
        for (int32_t j = 0; j < AG_TILE_N; j++) {
            float *c = t->c + i * (t->c_step / (int32_t)sizeof(float)) + j;
            *c = t->beta == 0.0f ? t->alpha * sums[i][j] : t->alpha * sums[i][j] + t->beta * *c;
        }
    }
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    microkernel(t, ROWS, ROWS);
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    microkernel(t, ROWS, COLUMNS);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    microkernel(t, COLUMNS, COLUMNS);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    microkernel(t, COLUMNS, GATHERED);
}
