/* The three loops over channels of max_pool2d.h in portable C, one comparison per element. */
#ifndef AG_TILES_MAX_POOL2D_SCALAR_H
#define AG_TILES_MAX_POOL2D_SCALAR_H

#include <stdint.h>

static inline void ag_pool_init(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k++) {
        y[k] = x[k];
        index[k] = (uint8_t)tap;
    }
}

static inline void ag_pool_update(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    for (int32_t k = 0; k < c; k++) {
        const float next = x[k], best = y[k];
        /* larger or unordered; the old value is kept when only it is NaN */
        if (!(next <= best) && (best == best || next != next)) {
            y[k] = next;
            index[k] = (uint8_t)tap;
        }
    }
}

static inline void ag_pool_scatter(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                   const int32_t *offsets) {
    for (int32_t k = 0; k < c; k++, dx++) {
        dx[offsets[index[k]]] += dy[k];
    }
}

#endif
