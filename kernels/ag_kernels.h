/* The kernel contract: what each kernel computes, its function type, and its symbol in each backend.
 *
 * Float matrices are row-major; ld* is the leading dimension: the distance between two rows in elements, at
 * least the stored width, so that slices need no copy. Pointers have the alignment of float. Sizes are >= 1.
 * Letters n and t say how an operand is stored: as written in the formula, or transposed. Where beta == 0 the
 * output is written, never read: NaN in it is harmless. Where beta != 0 it is read once, after its sum is
 * complete. Elements between a row's width and its leading dimension are neither read nor written. A kernel
 * allocates nothing, keeps no state and cannot fail.
 *
 * Kernels with the parameter `epilogue` finish each element of their result as it says before they store it;
 * NULL: as it is. With an epilogue beta is 0.
 *
 * `scratch` is memory that a kernel may write, aligned to 4 bytes, as many bytes as its row in kernels.toml
 * says, or NULL: where the row says nothing, or `scratch_optional` and there is no room. */
#ifndef AG_KERNELS_H
#define AG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "ag_shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Declares a kernel's symbol in each backend of this tree, whether or not the backend has it; small_neon: the
 * narrow tiles of neon. Any other symbol is declared by the generated C that calls it. */
#define AG_KERNEL(name)                                                                                      \
    ag_##name##_fn ag_##name##_ref, ag_##name##_host, ag_##name##_blas, ag_##name##_armv7em,                 \
        ag_##name##_fast, ag_##name##_mve, ag_##name##_cmsis, ag_##name##_cmsis_dsp, ag_##name##_neon,       \
        ag_##name##_small_neon

/* C[m,n] = alpha * op(A)[m,k] . op(B)[k,n] + beta * C[m,n]; the sum over ascending k is complete before C is
 * read. A is stored [m,k] (n) or [k,m] (t), B [k,n] (n) or [n,k] (t). C overlaps neither A nor B; A may
 * overlap B. */
typedef void ag_gemm_f32_fn(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc,
                            int32_t m, int32_t n, int32_t k, float alpha, float beta,
                            const ag_epilogue *epilogue);
typedef ag_gemm_f32_fn ag_gemm_nn_f32_fn, ag_gemm_nt_f32_fn, ag_gemm_tn_f32_fn, ag_gemm_tt_f32_fn;
AG_KERNEL(gemm_nn_f32);
AG_KERNEL(gemm_nt_f32);
AG_KERNEL(gemm_tn_f32);
AG_KERNEL(gemm_tt_f32);

/* y[m] = alpha * A[m,n] . x[n] + beta * y[m]; the sum over ascending n is complete before y is read.
 * y overlaps neither A nor x; A and x may overlap. */
typedef void ag_gemv_f32_fn(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                            float alpha, float beta, const ag_epilogue *epilogue);
AG_KERNEL(gemv_f32);

/* y[n] = alpha * A[m,n]' . x[m] + beta * y[n]; the sum over ascending m is complete before y is read.
 * y overlaps neither A nor x; A and x may overlap. */
typedef void ag_gemv_t_f32_fn(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                              float alpha, float beta, const ag_epilogue *epilogue);
AG_KERNEL(gemv_t_f32);

/* A[m,n] = (alpha * x[m]) y[n]' + beta * A[m,n].
 * A overlaps neither x nor y; x and y may overlap. */
typedef void ag_ger_f32_fn(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n,
                           float alpha, float beta);
AG_KERNEL(ger_f32);

/* y[n] = alpha * x[n] + beta * y[n]. y does not overlap x. */
typedef void ag_axpby_f32_fn(const float *x, float *y, int32_t n, float alpha, float beta);
AG_KERNEL(axpby_f32);

/* Rows in a block of a long sum. The sums of the blocks are added up, which keeps the rounding error as small
 * as in two short sums. */
#define AG_SUM_ROWS 64

/* y[n] = alpha * (the sum of each column of A[m,n]) + beta * y[n]; the sum over ascending m, by blocks of
 * AG_SUM_ROWS, is complete before y is read. y does not overlap A. */
typedef void ag_column_sums_f32_fn(const float *a, int32_t lda, float *y, int32_t m, int32_t n, float alpha,
                                   float beta);
AG_KERNEL(column_sums_f32);

/* y[n,oh,ow,o] = x[n,h,w,c] * w[o,kh,kw,c/groups], as in ag_conv2d_shape; each sum over ascending rows,
 * columns and channels of the window. y overlaps neither x nor w. */
typedef void ag_conv2d_f32_fn(const float *x, const float *w, float *y, int32_t n, void *scratch,
                              const ag_conv2d_shape *shape, const ag_epilogue *epilogue);
AG_KERNEL(conv2d_f32);

/* dx[n,h,w,c] = the sum of dy[n,oh,ow,o] w over the windows and output channels that contain the element,
 * ascending. dx overlaps neither dy nor w. */
typedef void ag_conv2d_dx_f32_fn(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                                 const ag_conv2d_shape *shape);
AG_KERNEL(conv2d_dx_f32);

/* dw[o,kh,kw,c/groups] = alpha * (the sum of x dy over images and windows, ascending) + beta * dw; the sum of
 * an element is complete before the element is read. dw overlaps neither x nor dy. */
typedef void ag_conv2d_dw_f32_fn(const float *x, const float *dy, float *dw, int32_t n,
                                 const ag_conv2d_shape *shape, float alpha, float beta);
AG_KERNEL(conv2d_dw_f32);

/* The same three where every channel has its own window: y[n,oh,ow,c], w[kh,kw,c], dw[kh,kw,c]. */
typedef void ag_depthwise2d_f32_fn(const float *x, const float *w, float *y, int32_t n,
                                   const ag_conv2d_shape *shape, const ag_epilogue *epilogue);
typedef void ag_depthwise2d_dx_f32_fn(const float *dy, const float *w, float *dx, int32_t n,
                                      const ag_conv2d_shape *shape);
typedef void ag_depthwise2d_dw_f32_fn(const float *x, const float *dy, float *dw, int32_t n,
                                      const ag_conv2d_shape *shape, float alpha, float beta);
AG_KERNEL(depthwise2d_f32);
AG_KERNEL(depthwise2d_dx_f32);
AG_KERNEL(depthwise2d_dw_f32);

/* y[n,oh,ow,c] = the largest element of each window of x[n,h,w,c] that is inside x, index = its number in
 * the window, row * kw + column. It is the first of equal elements; NaN is larger than all numbers, and the
 * last NaN is taken. Windows have at most 256 elements. y and index overlap neither x nor each other. */
typedef void ag_max_pool2d_f32_fn(const float *x, float *y, uint8_t *index, int32_t n,
                                  const ag_pool2d_shape *shape);
AG_KERNEL(max_pool2d_f32);

/* The same without index. */
typedef void ag_max_pool2d_values_f32_fn(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape);
AG_KERNEL(max_pool2d_values_f32);

/* dx[n,h,w,c] = the sum of dy[n,oh,ow,c] over the windows whose index selects the element, ascending;
 * gradients of elements in the padding are dropped. dx overlaps neither dy nor index. */
typedef void ag_max_pool2d_dx_f32_fn(const float *dy, const uint8_t *index, float *dx, int32_t n,
                                     const ag_pool2d_shape *shape);
AG_KERNEL(max_pool2d_dx_f32);

/* y[n,oh,ow,c] = the element of each window of x[n,h,w,c] that index selects, 0 in the padding: the adjoint
 * of ag_max_pool2d_dx. y overlaps neither x nor index. */
typedef void ag_max_pool2d_pick_f32_fn(const float *x, const uint8_t *index, float *y, int32_t n,
                                       const ag_pool2d_shape *shape);
AG_KERNEL(max_pool2d_pick_f32);

/* y[n,ph,pw,o], index = ag_max_pool2d of the result of ag_conv2d plus bias[o], which is never stored. y and
 * index overlap no operand, nor each other. */
typedef void ag_conv2d_pool_f32_fn(const float *x, const float *w, const float *bias, float *y,
                                   uint8_t *index, int32_t n, const ag_conv2d_pool_shape *shape);
AG_KERNEL(conv2d_pool_f32);

/* dx[n,h,w,c] = the sum of dy[n,ph,pw,o] w over the convolution's windows that index selects and that contain
 * the element, ascending; a dy of 0 adds nothing, whatever w is; dx is dense. dx overlaps neither dy nor
 * index nor w. */
typedef void ag_conv2d_pool_dx_f32_fn(const float *dy, const uint8_t *index, const float *w, float *dx,
                                      int32_t n, const ag_conv2d_pool_shape *shape);
AG_KERNEL(conv2d_pool_dx_f32);

/* dw[o,kh,kw,c] = alpha * (the sum of x dy over images and the windows that index selects, ascending) + beta
 * * dw; the sum of an element is complete before the element is read; a dy of 0 adds nothing, whatever x is.
 * dw overlaps nothing. */
typedef void ag_conv2d_pool_dw_f32_fn(const float *x, const float *dy, const uint8_t *index, float *dw,
                                      int32_t n, const ag_conv2d_pool_shape *shape, float alpha, float beta);
AG_KERNEL(conv2d_pool_dw_f32);

/* y[n,oh,ow,c] = the mean over each window of x[n,h,w,c]: the sum over ascending rows and columns inside x,
 * divided by the count of ag_pool2d_shape. y does not overlap x. */
typedef void ag_avg_pool2d_f32_fn(const float *x, float *y, int32_t n, const ag_pool2d_shape *shape);
AG_KERNEL(avg_pool2d_f32);

/* dx[n,h,w,c] = the sum over all windows that contain the element of dy[n,oh,ow,c] / count, over ascending
 * windows: the adjoint of ag_avg_pool2d. dx does not overlap dy. */
typedef void ag_avg_pool2d_dx_f32_fn(const float *dy, float *dx, int32_t n, const ag_pool2d_shape *shape);
AG_KERNEL(avg_pool2d_dx_f32);

/* y[o,v,i] = the sum of x[o,j,i] over ascending j with index[o,j,i] == v, for o < outer, v < rows, j < count,
 * i < inner. Indices are in [0, rows). y overlaps neither x nor index. */
typedef void ag_scatter_sum_f32_fn(const int32_t *index, const float *x, float *y, int32_t outer,
                                   int32_t rows, int32_t count, int32_t inner);
AG_KERNEL(scatter_sum_f32);

/* y[o,v,i] = alpha * (the sum of x[o,j,i] over ascending j with index[j] == v) + beta * y[o,v,i]; with beta
 * == 1 only rows that occur in index are touched. Indices are in [0, rows). y overlaps neither x nor index.
 */
typedef void ag_index_sum_f32_fn(const int32_t *index, const float *x, float *y, int32_t outer, int32_t rows,
                                 int32_t count, int32_t inner, float alpha, float beta);
AG_KERNEL(index_sum_f32);

/* y[o,j,i] = the sum of x[o,k,i] over k = 0 ... j, for o < outer, j < count, i < inner; over k = count - 1
 * down to j where reverse != 0. y may be x. */
typedef void ag_cumsum_f32_fn(const float *x, float *y, int32_t outer, int32_t count, int32_t inner,
                              int32_t reverse);
AG_KERNEL(cumsum_f32);

/* y[i,j] = x[i,j] for m rows of n elements, whose rows are lda elements apart in x, ldc in y. */
typedef void ag_copy_rows_f32_fn(const float *x, int32_t lda, float *y, int32_t ldc, int32_t m, int32_t n);
AG_KERNEL(copy_rows_f32);

/* Kernels of 8-bit integers. A quantised tensor q represents scale * (q - zero); where its parameters are
 * folded, sum is an int32_t that cannot overflow, and requantised(v, o) is ag_requantized(v, multiplier[o],
 * shift[o]) of ag_quantization.h. Results are equal to the last bit in every backend. */

/* How many bytes of its scratch memory a call needs; `autodiff-gen test-kernels` checks that its row's
 * formula says as many. */
#ifndef AG_SCRATCH_NEEDED
#define AG_SCRATCH_NEEDED(bytes) ((void)0)
#endif

/* y[n,oh,ow,o] = min(max(requantised(sum of (x - x_zero) w over the window + bias[o], o) + y_zero, low),
 * high) for x[n,h,w,c], w[o,kh,kw,c/groups]; elements outside x count as x_zero. y overlaps nothing. */
typedef void ag_conv2d_s8_fn(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                             const int8_t *shift, int8_t *y, int32_t n, int32_t x_zero, int32_t y_zero,
                             int32_t low, int32_t high, void *scratch, const ag_conv2d_shape *shape);
AG_KERNEL(conv2d_s8);

/* The same where every channel has its own window, w[kh,kw,c]. */
typedef ag_conv2d_s8_fn ag_depthwise2d_s8_fn;
AG_KERNEL(depthwise2d_s8);

/* The same with y in the memory of x, both without gaps; oh <= h, ow <= w. */
typedef ag_conv2d_s8_fn ag_depthwise2d_in_place_s8_fn;
AG_KERNEL(depthwise2d_in_place_s8);

/* The first two with a mask of the results of each image, (oh ow o + 7) / 8 bytes: bit i % 8 of byte i / 8 is
 * 1 where result i was between low and high, or one of them, before it was limited; bits after the last
 * result are 0. within overlaps nothing. */
typedef void ag_conv2d_within_s8_fn(const int8_t *x, const int8_t *w, const int32_t *bias,
                                    const int32_t *multiplier, const int8_t *shift, int8_t *y,
                                    uint8_t *within, int32_t n, int32_t x_zero, int32_t y_zero, int32_t low,
                                    int32_t high, void *scratch, const ag_conv2d_shape *shape);
typedef ag_conv2d_within_s8_fn ag_depthwise2d_within_s8_fn;
AG_KERNEL(conv2d_within_s8);
AG_KERNEL(depthwise2d_within_s8);

/* Gradients of the real numbers that quantised tensors represent: dx as in ag_conv2d_dx_f32, of integers w
 * in place of floats; dw as in ag_conv2d_dw_f32, of the integers x - x_zero. The order of the sums is not
 * specified. */
typedef void ag_conv2d_dx_f32_s8_fn(const float *dy, const int8_t *w, float *dx, int32_t n, void *scratch,
                                    const ag_conv2d_shape *shape);
typedef void ag_conv2d_dw_s8_f32_fn(const int8_t *x, const float *dy, float *dw, int32_t n, int32_t x_zero,
                                    void *scratch, const ag_conv2d_shape *shape, float alpha, float beta);
typedef ag_conv2d_dx_f32_s8_fn ag_depthwise2d_dx_f32_s8_fn;
typedef ag_conv2d_dw_s8_f32_fn ag_depthwise2d_dw_s8_f32_fn;
AG_KERNEL(conv2d_dx_f32_s8);
AG_KERNEL(conv2d_dw_s8_f32);
AG_KERNEL(depthwise2d_dx_f32_s8);
AG_KERNEL(depthwise2d_dw_s8_f32);

/* y[m,n] = min(max(requantised(sum of (x - x_zero) w over k + bias[n], n) + y_zero, low), high) for x[m,k],
 * w[n,k]. per_channel is 0 where all elements of multiplier are equal, and all of shift. y overlaps nothing.
 */
typedef void ag_dense_s8_fn(const int8_t *x, const int8_t *w, const int32_t *bias, const int32_t *multiplier,
                            const int8_t *shift, int8_t *y, int32_t m, int32_t n, int32_t k, int32_t x_zero,
                            int32_t y_zero, int32_t low, int32_t high, int32_t per_channel, void *scratch);
AG_KERNEL(dense_s8);

/* The same with a mask of the results of each row, (n + 7) / 8 bytes, as in ag_conv2d_within_s8. */
typedef void ag_dense_within_s8_fn(const int8_t *x, const int8_t *w, const int32_t *bias,
                                   const int32_t *multiplier, const int8_t *shift, int8_t *y, uint8_t *within,
                                   int32_t m, int32_t n, int32_t k, int32_t x_zero, int32_t y_zero,
                                   int32_t low, int32_t high, int32_t per_channel, void *scratch);
AG_KERNEL(dense_within_s8);

/* y[n,oh,ow,c] = the mean of the elements of each window that are inside x[n,h,w,c], rounded to the nearest
 * integer, halves away from 0, between low and high; every window has one, and the dilation is 1. y does not
 * overlap x. */
typedef void ag_avg_pool2d_s8_fn(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                                 void *scratch, const ag_pool2d_shape *shape);
AG_KERNEL(avg_pool2d_s8);

/* y[n,oh,ow,c] = the largest element of each window that is inside x[n,h,w,c], between low and high; every
 * window has one, and the dilation is 1. y does not overlap x. */
typedef void ag_max_pool2d_s8_fn(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high,
                                 const ag_pool2d_shape *shape);
AG_KERNEL(max_pool2d_s8);

/* y[m,n] = 256 softmax(scale x[m,n]) - 128 of each row, at most 127, with the bits of CMSIS-NN: fixed-point
 * exponentials of scale = multiplier / 2^31 * 2^shift / 2^26. The exponential is 0 for elements that are less
 * than the largest one by more than -least. n < 4096. y does not overlap x. */
typedef void ag_softmax_s8_fn(const int8_t *x, int8_t *y, int32_t m, int32_t n, int32_t multiplier,
                              int32_t shift, int32_t least);
AG_KERNEL(softmax_s8);

#ifdef __cplusplus
}
#endif

#endif
