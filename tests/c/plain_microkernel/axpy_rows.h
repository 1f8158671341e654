#ifndef AG_PLAIN_AXPY_ROWS_H
#define AG_PLAIN_AXPY_ROWS_H

#include <stdint.h>

static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    const int32_t dst_row = row_length + dst_skip / (int32_t)sizeof(float);
    const int32_t src_row = row_length + src_skip / (int32_t)sizeof(float);
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < row_length; j++) {
            dst[i * dst_row + j] += factor * src[i * src_row + j];
        }
    }
}

static inline void ag_zero_floats(float *dst, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        dst[i] = 0.0f;
    }
}

#endif
