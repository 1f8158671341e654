/* Average pooling of 8-bit integers with Helium. */
#include <arm_mve.h>

static inline void ag_sums_of_four(int32_t *result, const int8_t *x, int32_t rows, int32_t columns,
                                   int32_t x_h, int32_t x_w) {
    int32x4_t sums = vdupq_n_s32(0);
    for (; rows > 0; rows--, x += x_h) {
        const int8_t *element = x;
        for (int32_t j = columns; j > 0; j--, element += x_w) {
            sums = vaddq_s32(sums, vldrbq_s32(element));
        }
    }
    vst1q_s32(result, sums);
}

#include "tiles/avg_pool2d_s8.c"
