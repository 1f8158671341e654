/* Max pooling in portable C. */
#include "ag_kernels.h"
#include "tiles/max_pool2d_scalar.h"

#include "tiles/max_pool2d.h"

void ag_max_pool2d_f32_armv7em(const float *x, float *y, uint8_t *index, int32_t n,
                               const ag_pool2d_shape *shape) {
    ag_max_pool2d_by_taps(x, y, index, n, shape);
}

void ag_max_pool2d_dx_f32_armv7em(const float *dy, const uint8_t *index, float *dx, int32_t n,
                                  const ag_pool2d_shape *shape) {
    ag_max_pool2d_dx_by_taps(dy, index, dx, n, shape);
}
