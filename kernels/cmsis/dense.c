/* Products by CMSIS-NN. */
#include "ag_kernels.h"
#include "cmsis_nn.h"

/* As a convolution of m pixels with windows of one pixel, which has a scale for each channel. */
void ag_dense_s8_cmsis(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                       const int8_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                       int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch) {
    const ag_conv2d_shape pixels = {m, 1, k, m, 1, n, 1, 1, 1, 1, 0, 0, 1, 1, 1, m * k, k, k, 1, n};
    (void)per_channel;
    ag_conv2d_s8_cmsis(x, w, bias, multiplier, shift, y, 1, x_zero, y_zero, low, high, scratch, &pixels);
}

/* With one scale. Not with Helium: there CMSIS-NN expects the sums of w, as an argument whose place differs
 * between its versions; its convolution computes them itself. */
ag_dense_s8_fn ag_dense_of_one_scale_s8_cmsis;

void ag_dense_of_one_scale_s8_cmsis(const int8_t *x, const int8_t *w, const int32_t *bias,
                                    const int32_t *multiplier, const int8_t *shift, int8_t *y, int32_t m,
                                    int32_t n, int32_t k, int32_t x_zero, int32_t y_zero, int32_t low,
                                    int32_t high, int32_t per_channel, void *scratch) {
    const cmsis_nn_context context = cmsis_context(scratch);
    const cmsis_nn_per_tensor_quant_params scale = {*multiplier, *shift};
    const cmsis_nn_dims rows = cmsis_dims(m, 1, 1, k), matrix = cmsis_dims(k, 1, 1, n);
    const cmsis_nn_dims channels = cmsis_dims(1, 1, 1, n), result = cmsis_dims(m, 1, 1, n);
    cmsis_nn_fc_params params;
    (void)per_channel;
    params.input_offset = -x_zero;
    params.filter_offset = 0;
    params.output_offset = y_zero;
    params.activation = cmsis_limits(low, high);
    AG_SCRATCH_NEEDED(arm_fully_connected_s8_get_buffer_size(&matrix));
    (void)arm_fully_connected_s8(&context, &params, &scale, &rows, x, &matrix, w, &channels, bias, &result,
                                 y);
}
