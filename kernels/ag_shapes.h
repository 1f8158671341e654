/* Geometry of convolutions and pools, structs of values that do not change from call to call, so that
 * generated code keeps them in flash; and epilogues. */
#ifndef AG_SHAPES_H
#define AG_SHAPES_H

#include <stddef.h>
#include <stdint.h>

/* Convolution of x[n,h,w,c] with w[o,kh,kw,c/groups] into y[n,oh,ow,o]; images are channel-last. Window (p,
 * q) of y starts at row p * stride_h - pad_top and column q * stride_w - pad_left of x; its elements are
 * dilation_h and dilation_w apart, and elements outside x count as 0. Output channels are in `groups` groups
 * of equal size; each group reads c / groups channels of x. x_n, x_h, x_w and x_c are the strides of x in
 * elements along each axis; ldy is the stride between two pixels of y, at least o. The gradients of a
 * convolution use the same shape: dx has the layout of x, dy the layout of y. Depthwise: o == c == groups. */
typedef struct {
    int32_t h, w, c, oh, ow, o, kh, kw, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int32_t groups, x_n, x_h, x_w, x_c, ldy;
} ag_conv2d_shape;

/* A convolution of one group into oh * ow pixels, as in ag_conv2d_shape, and max pooling of its result into
 * y[n,ph,pw,o], without padding. The pooling windows have pool_h * pool_w pixels, have strides pool_stride_h
 * and pool_stride_w of at least that size, and may extend past the end of the convolution's result. */
typedef struct {
    int32_t h, w, c, oh, ow, o, kh, kw, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w;
    int32_t x_n, x_h, x_w, x_c, pool_h, pool_w, pool_stride_h, pool_stride_w, ph, pw;
} ag_conv2d_pool_shape;

/* Pooling. Images are channel-last; x has h * w pixels of c channels, y has oh * ow. Window (p, q) of y
 * starts at row p * stride_h - pad_top and column q * stride_w - pad_left of x; its kh * kw elements are
 * dilation_h and dilation_w apart, and elements outside x are padding. x_n, x_h, x_w and x_c are the strides
 * of x in elements along each axis; y is dense. Means divide by divisor; where that is 0, by the number of
 * the window's elements inside x, or, when count_pad is 1, inside x and its padding. */
typedef struct {
    int32_t h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right;
    int32_t dilation_h, dilation_w, divisor, count_pad, x_n, x_h, x_w, x_c;
} ag_pool2d_shape;

/* y = min(max(scale[o] * y + bias[o] + residual, low), high), where o is the output channel: the column of y,
 * or the row of gemv. residual has the shape and the leading dimension of y, and does not overlap it. Nothing
 * is multiplied or added where a pointer is null, and nothing limited unless low < high. NaN stays NaN. */
typedef struct {
    const float *scale, *bias, *residual;
    float low, high;
} ag_epilogue;

/* The result for y, an element of channel o that is stored `at` elements after the first one; y itself where
 * e is null. */
static inline float ag_finished(const ag_epilogue *e, float y, int32_t o, ptrdiff_t at) {
    if (!e) {
        return y;
    }
    y = e->scale ? e->scale[o] * y : y;
    y = e->bias ? y + e->bias[o] : y;
    y = e->residual ? y + e->residual[at] : y;
    return !(e->low < e->high) ? y : y < e->low ? e->low : y > e->high ? e->high : y;
}

/* The same for a matrix y[m,n] that is stored. */
static inline void ag_finish(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n) {
    for (int32_t i = 0; e && i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            const ptrdiff_t at = (ptrdiff_t)i * ldy + j;
            y[at] = ag_finished(e, y[at], j, at);
        }
    }
}

#endif
