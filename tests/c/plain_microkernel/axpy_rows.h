#include <stdint.h>

static inline void ag_axpy_rows(float *to, int32_t to_skip, const float *from, int32_t from_skip,
                                int32_t rows, int32_t run, float factor) {
    const int32_t to_row = run + to_skip / (int32_t)sizeof(float);
    const int32_t from_row = run + from_skip / (int32_t)sizeof(float);
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < run; j++) {
            to[i * to_row + j] += factor * from[i * from_row + j];
        }
    }
}

static inline void ag_zero_floats(float *to, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        to[i] = 0.0f;
    }
}
