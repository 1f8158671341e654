/* The micro-kernels of tiles/microkernel.h in plain C, sum by sum, for the tiles of any schedule. */
#include "tiles/microkernel.h"

enum { ELEMENT = sizeof(float) };

/* Where the operands of a sum begin, and the bytes from one product to the next. */
typedef struct {
    const float *a, *b;
    ptrdiff_t a_step, b_step;
} operands;

static float sum_of(const ag_tile *t, operands o, int32_t blocks) {
    float sum = 0.0f;
    for (int32_t block = 0; block < blocks; block++) {
        const float *a = block > 0 ? ag_after(o.a, block * t->a_block) : o.a;
        const float *b = block > 0 ? ag_after(o.b, block * t->b_block) : o.b;
        for (int32_t run = 0; run < t->k_runs; run++) {
            for (int32_t k = 0; k < t->k; k++) {
                sum += *a * *b;
                a = ag_after(a, o.a_step);
                b = ag_after(b, o.b_step);
            }
            a = ag_after(a, t->a_skip);
            b = ag_after(b, t->b_skip);
        }
    }
    return sum;
}

/* `a_rows`: A is stored as rows; `b_rows`: columns of B are rows in memory; `gathered`: they are anywhere. */
static void tile(const ag_tile *t, bool a_rows, bool b_rows, bool gathered) {
    const int32_t rows = AG_GENERAL_TILES ? t->rows : AG_TILE_M;
    const int32_t columns = AG_GENERAL_TILES ? t->columns : AG_TILE_RUNS && !gathered ? t->run : AG_TILE_N;
    const bool scattered = AG_GENERAL_TILES && t->c_rows != NULL;
    for (int32_t i = 0; i < rows; i++) {
        float *c = scattered ? t->c_rows[i] + t->c_column : ag_element_after(t->c, (ptrdiff_t)i * t->c_step);
        for (int32_t j = 0; j < columns; j++) {
            operands o = {t->a[0] + i, t->b[0] + j, t->a_step, t->b_step};
            if (a_rows) {
                o.a = AG_GENERAL_TILES && !scattered ? ag_after(t->a[0], (ptrdiff_t)i * t->a_row) : t->a[i];
                o.a_step = AG_GENERAL_TILES && !b_rows ? t->a_step : ELEMENT;
            }
            if (b_rows || gathered) {
                o.b = t->b[j % AG_TILE_N];
                o.b = AG_TILE_RUNS && b_rows ? ag_after(o.b, (ptrdiff_t)(j / AG_TILE_N) * t->b_next) : o.b;
                o.b_step = b_rows ? ELEMENT : t->b_step;
            }
            const float sum = t->alpha * sum_of(t, o, AG_GENERAL_TILES && !b_rows ? t->k_blocks : 1);
            c[j] = t->beta == 0.0f ? sum : sum + t->beta * c[j];
        }
    }
}

void AG_MICROKERNEL(nn)(const ag_tile *t) {
    tile(t, true, false, false);
}

void AG_MICROKERNEL(nt)(const ag_tile *t) {
    tile(t, true, true, false);
}

void AG_MICROKERNEL(tn)(const ag_tile *t) {
    tile(t, false, false, false);
}

void AG_MICROKERNEL(tg)(const ag_tile *t) {
    tile(t, false, false, true);
}

void AG_MICROKERNEL(np)(const ag_tile *t) {
    ag_tile panel = *t;
    panel.b_skip = 0;
    for (int32_t i = 0; i < t->run; i++) {
        float *c = ag_element_after(t->c, (ptrdiff_t)i * t->c_step);
        for (int32_t j = 0; j < AG_PANEL_COLUMNS; j++) {
            const operands o = {ag_after(t->a[0], (ptrdiff_t)i * t->a_step), t->b[0] + j, ELEMENT,
                                AG_PANEL_COLUMNS * ELEMENT};
            c[j] = sum_of(&panel, o, 1);
        }
    }
}
