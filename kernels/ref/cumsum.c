/* Cumulative sums, forward or reverse. */
#include "ag_kernels.h"

#include <stddef.h>

void ag_cumsum_f32_ref(const float *x, float *y, int32_t outer, int32_t count, int32_t inner,
                       int32_t reverse) {
    const ptrdiff_t step = reverse != 0 ? -(ptrdiff_t)inner : inner;
    const ptrdiff_t start = reverse != 0 ? (ptrdiff_t)(count - 1) * inner : 0;
    for (int32_t o = 0; o < outer; o++) {
        for (int32_t i = 0; i < inner; i++) {
            const ptrdiff_t at = (ptrdiff_t)o * count * inner + start + i;
            float sum = 0.0f;
            for (int32_t j = 0; j < count; j++) {
                sum += x[at + j * step];
                y[at + j * step] = sum;
            }
        }
    }
}
