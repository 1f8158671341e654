/* Row-wise axpy for the gradients of pooled convolutions, four floats at a time. */
#ifndef AG_AXPY_ROWS_NEON_H
#define AG_AXPY_ROWS_NEON_H

#include <arm_neon.h>
#include <stdint.h>

/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    const float32x4_t factors = vdupq_n_f32(factor);
    for (; rows > 0; rows--) {
        int32_t remaining = row_length;
        for (; remaining >= 4; remaining -= 4, dst += 4, src += 4) {
            vst1q_f32(dst, vfmaq_f32(vld1q_f32(dst), vld1q_f32(src), factors));
        }
        for (; remaining > 0; remaining--) {
            *dst++ += factor * *src++;
        }
        dst += dst_skip / (int32_t)sizeof(float);
        src += src_skip / (int32_t)sizeof(float);
    }
}

/* Stores zeros. */
static inline void ag_zero_floats(float *dst, int32_t count) {
    for (; count >= 4; count -= 4, dst += 4) {
        vst1q_f32(dst, vdupq_n_f32(0.0f));
    }
    for (; count > 0; count--) {
        *dst++ = 0.0f;
    }
}

#endif
