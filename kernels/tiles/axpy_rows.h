/* Row-wise axpy for the gradients of pooled convolutions: short rows. A backend whose vec.h defines
 * AG_AXPY_ROWS_ASSEMBLY as 1 has its own, axpy_rows_assembly.h. */
#ifndef AG_TILES_AXPY_ROWS_H
#define AG_TILES_AXPY_ROWS_H

#include "tiles/row_updates.h"

#ifdef AG_AXPY_ROWS_ASSEMBLY
#include "axpy_rows_assembly.h"
#else
/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    for (; rows > 0; rows--) {
        ag_update_rows(BETA_ONE, 1, LANES == 1, dst, 0, one_factor(factor), src, row_length, 1.0f);
        dst += row_length + dst_skip / (int32_t)sizeof(float);
        src += row_length + src_skip / (int32_t)sizeof(float);
    }
}
#endif

/* Stores zeros. */
static inline void ag_zero_floats(float *dst, int32_t count) {
    vecs zeros;
    EACH (q, RUN) {
        zeros.val[q] = zero();
    }
    for (; RUN > 1 && count >= RUN * LANES; count -= RUN * LANES) {
        put_run(RUN, &dst, zeros);
    }
    for (; AG_SHORT_RUN > 0 && count >= AG_SHORT_RUN * LANES; count -= AG_SHORT_RUN * LANES) {
        put_run(AG_SHORT_RUN, &dst, zeros);
    }
    for (; count >= LANES; count -= LANES) {
        put_vec(&dst, zero());
    }
    for (; count > 0; count -= PART, dst += PART) {
        store_masked(dst, zero(), first_lanes(count));
    }
}

#endif
