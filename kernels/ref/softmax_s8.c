/* Softmax of quantised rows: exponentials lose 12 bits before they are added up, and are multiplied by the
 * inverse of their sum. */
#include "ag_kernels.h"
#include "ag_quantization.h"

static inline int32_t high_product(int32_t a, int32_t b) {
    return ag_high_word((int64_t)a * b);
}

/* exp(v / 2^26) 2^31 for -31 <= v / 2^26 <= 0: a polynomial around -1/8 for the part between -1/4 and 0, and
 * powers of e, from exp(-1/4) to exp(-16), for the rest. */
static inline int32_t exponential(int32_t v) {
    static const int32_t powers[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t quarter = 1 << 24, below = (v & (quarter - 1)) - quarter;
    const int32_t x = below * 32 + (1 << 28), x2 = high_product(x, x);
    const int32_t terms = ag_divided(high_product(x2, x2), 2) + high_product(x2, x);
    const int32_t sum = x + ag_divided(high_product(terms, 715827883) + x2, 1); /* 2^31 / 3 */
    int32_t result = 1895147668 + high_product(1895147668, sum);                /* exp(-1/8) 2^31 */
    for (int32_t i = 0, quarters = (below - v) / quarter; quarters > 0; i++, quarters /= 2) {
        result = quarters % 2 ? high_product(result, powers[i]) : result;
    }
    return v == 0 ? INT32_MAX : result;
}

/* 2^62 / total for total >= 2^31, less than 2^31: three steps of Newton's method. */
static inline int32_t inverse(uint32_t total) {
    const int32_t half = (int32_t)(total >> 1);
    int32_t x = 1515870810 + high_product(half, -1010580540); /* 48/17 - 32/17 half */
    for (int32_t i = 0; i < 3; i++) {
        x += 4 * high_product(x, (1 << 29) - high_product(half, x));
    }
    return x < 1 << 30 ? 2 * x : INT32_MAX;
}

void ag_softmax_s8_ref(const int8_t *x, int8_t *y, int32_t m, int32_t n, int32_t multiplier, int32_t shift,
                       int32_t least) {
    for (int32_t i = 0; i < m; i++, x += n, y += n) {
        int32_t most = INT8_MIN, right = 35;
        uint32_t total = 0;
        for (int32_t j = 0; j < n; j++) {
            most = x[j] > most ? x[j] : most;
        }
        for (int32_t j = 0; j < n; j++) {
            const int32_t below = x[j] - most;
            if (below >= least) {
                const int32_t e = exponential(high_product(below * (1 << shift), multiplier));
                total += (uint32_t)ag_divided(e, 12);
            }
        }
        for (; total < 1u << 31; right--) {
            total *= 2;
        }
        const int32_t factor = inverse(total);
        for (int32_t j = 0; j < n; j++) {
            const int32_t below = x[j] - most;
            int32_t v = 0;
            if (below >= least && right < 32) {
                const int32_t e = exponential(high_product(below * (1 << shift), multiplier));
                v = ag_divided(high_product(factor, e), right);
            }
            y[j] = (int8_t)(v < 255 ? v - 128 : 127);
        }
    }
}
