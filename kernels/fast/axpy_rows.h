/* What gradients of pooled convolutions add to. */
#ifndef AG_AXPY_ROWS_FAST_H
#define AG_AXPY_ROWS_FAST_H

#include <stdint.h>

/* to += factor * from for `rows` rows of `run` floats, >= 1 of both; the skips, in bytes, lie between the end
 * of a row and the next one. */
static inline void ag_axpy_rows(float *restrict to, int32_t to_skip, const float *restrict from,
                                int32_t from_skip, int32_t rows, int32_t run, float factor) {
    for (; rows > 0; rows--) {
        int32_t left = run;
        for (; left >= 4; left -= 4, to += 4, from += 4) {
            to[0] += factor * from[0];
            to[1] += factor * from[1];
            to[2] += factor * from[2];
            to[3] += factor * from[3];
        }
        for (; left > 0; left--) {
            *to++ += factor * *from++;
        }
        to += to_skip / (int32_t)sizeof(float);
        from += from_skip / (int32_t)sizeof(float);
    }
}

/* Zeros. */
static inline void ag_zero_floats(float *to, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        to[i] = 0.0f;
    }
}

#endif
