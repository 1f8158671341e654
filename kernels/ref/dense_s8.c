/* Products of quantised matrices. */
#include "ag_kernels.h"
#include "ag_quantization.h"

void ag_dense_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                     const int8_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                     int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch) {
    (void)per_channel;
    (void)scratch;
    for (int32_t i = 0; i < m; i++, x += k) {
        const int8_t *row = w;
        for (int32_t j = 0; j < n; j++, row += k) {
            int32_t sum = bias[j];
            for (int32_t l = 0; l < k; l++) {
                sum += (x[l] - x_zero) * row[l];
            }
            *y++ = (int8_t)ag_limited(ag_requantized(sum, multiplier[j], shift[j]) + y_zero, low, high);
        }
    }
}
