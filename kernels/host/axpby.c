/* Two vectors at a time; the tail by masked loads and stores. */
#include "ag_kernels.h"
#include "vec.h"

enum { PAIR = 2 * LANES };

void ag_axpby_f32_host(const float *x, float *y, int32_t n, float alpha, float beta) {
    for (; n >= PAIR; n -= PAIR, x += PAIR, y += PAIR) {
        const vec first = load(x), second = load(x + LANES);
        scale_add(y, first, LANES, alpha, beta);
        scale_add(y + LANES, second, LANES, alpha, beta);
    }
    for (; n > 0; n -= LANES, x += LANES, y += LANES) {
        const int32_t count = n < LANES ? n : LANES;
        scale_add(y, load_partial(x, count), count, alpha, beta);
    }
}
