/* Pooling by maximum, one comparison for each element. */
#include "ag_kernels.h"

static inline void ag_pool_first(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k++) {
        y[k] = x[k];
        index[k] = (uint8_t)tap;
    }
}

static inline void ag_pool_more(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k++) {
        const float next = x[k], best = y[k];
        /* larger or unordered; what is there stays when it alone is NaN */
        if (!(next <= best) && (best == best || next != next)) {
            y[k] = next;
            index[k] = (uint8_t)tap;
        }
    }
}

static inline void ag_pool_back(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                const int32_t *offsets) {
    for (int32_t k = 0; k < c; k++, dx++) {
        dx[offsets[index[k]]] += dy[k];
    }
}

#include "tiles/max_pool2d.h"

void ag_max_pool2d_f32_fast(const float *x, float *y, uint8_t *index, int32_t n,
                            const ag_pool2d_shape *shape) {
    ag_max_pool2d_by_taps(x, y, index, n, shape);
}

void ag_max_pool2d_dx_f32_fast(const float *dy, const uint8_t *index, float *dx, int32_t n,
                               const ag_pool2d_shape *shape) {
    ag_max_pool2d_dx_by_taps(dy, index, dx, n, shape);
}
