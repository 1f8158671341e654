/* What gradients of pooled convolutions add to, four floats at a time. */
#ifndef AG_AXPY_ROWS_NEON_H
#define AG_AXPY_ROWS_NEON_H

#include <arm_neon.h>
#include <stdint.h>

/* to += factor * from for `rows` rows of `run` floats, >= 1 of both; the skips, in bytes, lie between the end
 * of a row and the next one. */
static inline void ag_axpy_rows(float *to, int32_t to_skip, const float *from, int32_t from_skip,
                                int32_t rows, int32_t run, float factor) {
    const float32x4_t factors = vdupq_n_f32(factor);
    for (; rows > 0; rows--) {
        int32_t left = run;
        for (; left >= 4; left -= 4, to += 4, from += 4) {
            vst1q_f32(to, vfmaq_f32(vld1q_f32(to), vld1q_f32(from), factors));
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
    for (; count >= 4; count -= 4, to += 4) {
        vst1q_f32(to, vdupq_n_f32(0.0f));
    }
    for (; count > 0; count--) {
        *to++ = 0.0f;
    }
}

#endif
