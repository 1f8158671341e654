/* Products of quantised matrices. */
#include "ag_kernels.h"
#include "ag_quantization.h"

/* within: NULL where no mask is stored. */
static inline void dense(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                         const int8_t *shift, int8_t *y, uint8_t *within, int32_t m, int32_t n, int32_t k,
                         int32_t x_zero, int32_t y_zero, int32_t low, int32_t high) {
    for (int32_t i = 0; i < m; i++, x += k) {
        const int8_t *row = w;
        for (int32_t j = 0; j < n; j++, row += k) {
            int32_t sum = bias[j];
            for (int32_t l = 0; l < k; l++) {
                sum += (x[l] - x_zero) * row[l];
            }
            const int32_t v = ag_requantized(sum, multiplier[j], shift[j]) + y_zero;
            *y++ = (int8_t)ag_limited(v, low, high);
            if (within) {
                ag_mark_within(within + (ptrdiff_t)i * ((n + 7) / 8), j, v, low, high);
            }
        }
    }
}

void ag_dense_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                     const int8_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                     int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch) {
    (void)per_channel;
    (void)scratch;
    dense(x, w, bias, multiplier, shift, y, NULL, m, n, k, x_zero, y_zero, low, high);
}

void ag_dense_within_s8_ref(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                            const int8_t *shift, int8_t *y, uint8_t *within, int32_t m, int32_t n, int32_t k,
                            int32_t x_zero, int32_t y_zero, int32_t low, int32_t high, int32_t per_channel,
                            void *scratch) {
    (void)per_channel;
    (void)scratch;
    dense(x, w, bias, multiplier, shift, y, within, m, n, k, x_zero, y_zero, low, high);
}
