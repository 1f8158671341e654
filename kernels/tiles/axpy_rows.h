/* Row-wise axpy for the gradients of pooled convolutions: short rows. A backend whose vec.h defines
 * AG_AXPY_ROWS_ASSEMBLY as 1 has its own, axpy_rows_assembly.h. */
#ifndef AG_TILES_AXPY_ROWS_H
#define AG_TILES_AXPY_ROWS_H

#include "vec.h"

#if AG_AXPY_ROWS_ASSEMBLY
#include "axpy_rows_assembly.h"
#else
#include "tiles/vectors.h"

/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    enum { STEP = LANES == 1 ? RUN : LANES };
    const factors f = one_factor(factor);
    for (; rows > 0; rows--) {
        for (uint32_t k = (uint32_t)row_length / STEP; k > 0; k--) {
            if (LANES == 1) {
                const vecs v = held_run(&src);
                vecs sum = load_run(dst);
                EACH (q, RUN) {
                    sum.val[q] = plus(sum.val[q], v.val[q], f, 0);
                }
                put_run(&dst, sum);
            } else {
                const vec v = next_vec(&src);
                put_vec(&dst, plus(load(dst), v, f, 0));
            }
        }
        for (int32_t rest = row_length & (STEP - 1), part; rest > 0; rest -= part, dst += part, src += part) {
            const lane_mask mask = first_lanes(rest);
            store_masked(dst, plus(load_masked(dst, mask), load_masked(src, mask), f, 0), mask);
            part = rest < PART ? rest : PART;
        }
        dst += dst_skip / (int32_t)sizeof(float);
        src += src_skip / (int32_t)sizeof(float);
    }
}

/* Stores zeros. */
static inline void ag_zero_floats(float *dst, int32_t count) {
    for (uint32_t k = (uint32_t)count / LANES; k > 0; k--) {
        put_vec(&dst, zero());
    }
    for (int32_t rest = count & (LANES - 1); rest > 0; rest -= PART, dst += PART) {
        store_masked(dst, zero(), first_lanes(rest));
    }
}

#endif
#endif
