/* Geometry of kernels: numbers that are the same at every call, so that generated code keeps them in flash.
 */
#ifndef AG_SHAPES_H
#define AG_SHAPES_H

#include <stdint.h>

/* Pooling. Images lie channel last; x has h * w pixels of c channels, y has oh * ow. Window (p, q) of y
 * begins at row p * stride_h - pad_top and column q * stride_w - pad_left of x; its kh * kw elements are
 * dilation_h and dilation_w apart, and those outside x are padding. x_n, x_h, x_w and x_c are the distances
 * in elements between neighbours of x along each axis; y lies without gaps. Means divide by divisor; where
 * that is 0, by the number of the window's elements inside x, or, when count_pad is 1, inside x and its
 * padding. */
typedef struct {
    int32_t h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right;
    int32_t dilation_h, dilation_w, divisor, count_pad, x_n, x_h, x_w, x_c;
} ag_pool2d_shape;

#endif
