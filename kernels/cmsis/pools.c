/* Average and max pooling by CMSIS-NN, one image at a time: not all of its versions know a number of images.
 */
#include "ag_kernels.h"
#include "cmsis_nn.h"

static cmsis_nn_pool_params params_of(const ag_pool2d_shape *s, int32_t low, int32_t high) {
    cmsis_nn_pool_params params;
    params.stride = cmsis_tile(s->stride_h, s->stride_w);
    params.padding = cmsis_tile(s->pad_top, s->pad_left);
    params.activation = cmsis_limits(low, high);
    return params;
}

void ag_avg_pool2d_s8_cmsis(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high, void *scratch,
                            const ag_pool2d_shape *shape) {
    const ag_pool2d_shape s = *shape;
    const cmsis_nn_context context = cmsis_context(scratch);
    const cmsis_nn_pool_params params = params_of(shape, low, high);
    const cmsis_nn_dims image = cmsis_dims(1, s.h, s.w, s.c), window = cmsis_dims(1, s.kh, s.kw, 1);
    const cmsis_nn_dims result = cmsis_dims(1, s.oh, s.ow, s.c);
    AG_SCRATCH_NEEDED(arm_avgpool_s8_get_buffer_size(s.ow, s.c));
    for (int32_t i = 0; i < n; i++, x += s.x_n, y += s.oh * s.ow * s.c) {
        (void)arm_avgpool_s8(&context, &params, &image, x, &window, &result, y);
    }
}

void ag_max_pool2d_s8_cmsis(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                            const ag_pool2d_shape *shape) {
    const ag_pool2d_shape s = *shape;
    const cmsis_nn_context context = cmsis_context(NULL);
    const cmsis_nn_pool_params params = params_of(shape, low, high);
    const cmsis_nn_dims image = cmsis_dims(1, s.h, s.w, s.c), window = cmsis_dims(1, s.kh, s.kw, 1);
    const cmsis_nn_dims result = cmsis_dims(1, s.oh, s.ow, s.c);
    for (int32_t i = 0; i < n; i++, x += s.x_n, y += s.oh * s.ow * s.c) {
        (void)arm_max_pool_s8(&context, &params, &image, x, &window, &result, y);
    }
}
