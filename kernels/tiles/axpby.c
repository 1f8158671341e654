/* One row, a run of vectors at a time, with separate code for beta == 0, beta == 1 and any other beta. */
#include "tiles/moving_pointers.h"
#include "tiles/row_updates.h"

void AG_SYMBOL(axpby_f32)(const float *x, float *y, int32_t n, float alpha, float beta) {
    const factors f = one_factor(alpha);
    if (beta == 0.0f) {
        ag_update_rows(BETA_ZERO, 1, true, y, 0, f, x, n, beta);
    } else if (beta == 1.0f) {
        ag_update_rows(BETA_ONE, 1, true, y, 0, f, x, n, beta);
    } else {
        ag_update_rows(BETA_ANY, 1, true, y, 0, f, x, n, beta);
    }
}
