/* Row-wise axpy for the gradients of pooled convolutions. */
#ifndef AG_AXPY_ROWS_FAST_H
#define AG_AXPY_ROWS_FAST_H

#include <stdint.h>

/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *restrict dst, int32_t dst_skip, const float *restrict src,
                                int32_t src_skip, int32_t rows, int32_t row_length, float factor) {
    for (; rows > 0; rows--) {
        int32_t remaining = row_length;
        for (; remaining >= 4; remaining -= 4, dst += 4, src += 4) {
            dst[0] += factor * src[0];
            dst[1] += factor * src[1];
            dst[2] += factor * src[2];
            dst[3] += factor * src[3];
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
    for (int32_t i = 0; i < count; i++) {
        dst[i] = 0.0f;
    }
}

#endif
