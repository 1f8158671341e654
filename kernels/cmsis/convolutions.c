/* Convolution and depthwise convolution by CMSIS-NN; the conditions in kernels.toml exclude calls that it
 * does not compute. It is called for one image at a time, its optimised case. */
#include "ag_kernels.h"
#include "cmsis_nn.h"

#include <stdbool.h>

void ag_conv2d_s8_cmsis(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                        const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                        int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape s = *shape;
    /* One row is passed as one column: CMSIS-NN's function for rows expects the same padding on both sides.
     */
    const bool column = s.h == 1 && s.kh == 1 && s.kw > 1;
    int32_t *const shifts = scratch;
    const cmsis_nn_context context = cmsis_context(shifts + s.o);
    const cmsis_nn_per_channel_quant_params scales = cmsis_scales(multiplier, shift, s.o, shifts);
    const cmsis_nn_dims image = column ? cmsis_dims(1, s.w, 1, s.c) : cmsis_dims(1, s.h, s.w, s.c);
    const cmsis_nn_dims filter = column ? cmsis_dims(s.o, s.kw, 1, s.c) : cmsis_dims(s.o, s.kh, s.kw, s.c);
    const cmsis_nn_dims result = column ? cmsis_dims(1, s.ow, s.oh, s.o) : cmsis_dims(1, s.oh, s.ow, s.o);
    const cmsis_nn_dims channels = cmsis_dims(1, 1, 1, s.o);
    cmsis_nn_conv_params params;
    params.input_offset = -x_zero;
    params.output_offset = y_zero;
    params.stride = column ? cmsis_tile(s.stride_w, s.stride_h) : cmsis_tile(s.stride_h, s.stride_w);
    params.padding = column ? cmsis_tile(s.pad_left, s.pad_top) : cmsis_tile(s.pad_top, s.pad_left);
    params.dilation =
        column ? cmsis_tile(s.dilation_w, s.dilation_h) : cmsis_tile(s.dilation_h, s.dilation_w);
    params.activation = cmsis_limits(low, high);
    AG_SCRATCH_NEEDED(4 * s.o + arm_convolve_wrapper_s8_get_buffer_size(&params, &image, &filter, &result));
    for (int32_t i = 0; i < n; i++, x += s.x_n, y += s.oh * s.ow * s.o) {
        (void)arm_convolve_wrapper_s8(&context, &params, &scales, &image, x, &filter, w, &channels, bias,
                                      &result, y);
    }
}

void ag_depthwise2d_s8_cmsis(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                             const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                             int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape) {
    const ag_conv2d_shape s = *shape;
    int32_t *const shifts = scratch;
    const cmsis_nn_context context = cmsis_context(shifts + s.c);
    const cmsis_nn_per_channel_quant_params scales = cmsis_scales(multiplier, shift, s.c, shifts);
    const cmsis_nn_dims image = cmsis_dims(1, s.h, s.w, s.c), filter = cmsis_dims(1, s.kh, s.kw, s.c);
    const cmsis_nn_dims result = cmsis_dims(1, s.oh, s.ow, s.c), channels = cmsis_dims(1, 1, 1, s.c);
    cmsis_nn_dw_conv_params params;
    params.input_offset = -x_zero;
    params.output_offset = y_zero;
    params.ch_mult = 1;
    params.stride = cmsis_tile(s.stride_h, s.stride_w);
    params.padding = cmsis_tile(s.pad_top, s.pad_left);
    params.dilation = cmsis_tile(s.dilation_h, s.dilation_w);
    params.activation = cmsis_limits(low, high);
    AG_SCRATCH_NEEDED(4 * s.c +
                      arm_depthwise_conv_wrapper_s8_get_buffer_size(&params, &image, &filter, &result));
    for (int32_t i = 0; i < n; i++, x += s.x_n, y += s.oh * s.ow * s.c) {
        (void)arm_depthwise_conv_wrapper_s8(&context, &params, &scales, &image, x, &filter, w, &channels,
                                            bias, &result, y);
    }
}
