/* An image of zeros, to which gradients of windows are added. */
#ifndef AG_TILES_ZERO_IMAGE_H
#define AG_TILES_ZERO_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* h x w pixels of c channels. */
static inline void ag_zero_image(float *x, int32_t h, int32_t w, int32_t c, ptrdiff_t x_h, ptrdiff_t x_w,
                                 ptrdiff_t x_c) {
    for (int32_t i = 0; i < h; i++, x += x_h) {
        if (x_c == 1 && x_w == c) {
            memset(x, 0, (size_t)w * (size_t)c * sizeof *x);
            continue;
        }
        for (int32_t k = 0; k < c; k++) {
            for (int32_t j = 0; j < w; j++) {
                x[k * x_c + j * x_w] = 0.0f;
            }
        }
    }
}

#endif
