/* Average pooling of 8-bit integers: SXTAB16 adds two elements to sums of 16 bits. */
#include "microkernel_s8.h"

static inline void ag_sums_of_four(int32_t *result, const int8_t *x, int32_t rows, int32_t columns,
                                   int32_t x_h, int32_t x_w) {
    uint32_t even = 0, odd = 0;
    for (; rows > 0; rows--, x += x_h) {
        const int8_t *element = x;
        for (int32_t j = columns; j > 0; j--, element += x_w) {
            const uint32_t four = ag_four(element);
            even = ag_even(four, even);
            odd = ag_odd(four, odd);
        }
    }
    result[0] = (int16_t)even;
    result[1] = (int16_t)odd;
    result[2] = (int32_t)even >> 16;
    result[3] = (int32_t)odd >> 16;
}

#include "tiles/avg_pool2d_s8.c"
