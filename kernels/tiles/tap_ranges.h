/* Splits the windows along one axis into ranges whose valid taps (those inside the image) are the same.
 *
 *     5 taps, stride 1, pad 2, 11 elements (x: padding)
 *     window 0         x x 1 1 1               begin = 0, end = 1, first = 2, last = 5
 *     window 1           x 1 1 1 1             begin = 1, end = 2, first = 1, last = 5
 *     windows 2 .. 8       1 1 1 1 1  ...      begin = 2, end = 9, first = 0, last = 5 */
#ifndef AG_TILES_TAP_RANGES_H
#define AG_TILES_TAP_RANGES_H

#include "tiles/symbols.h"

#include <stdint.h>

/* One axis of some of the outputs: output m of `count`, stored at out + m * out_step, is the sum over taps t
 * of the input's element in + m * in_step + t * in_tap with weight w + t * w_tap. Elements outside the
 * input's `size` elements count as 0. */
typedef struct {
    int32_t out, out_step, count;
    int32_t in, in_step, in_tap, size;
    int32_t w, w_tap, taps;
} ag_axis;

/* The axis of a convolution or of pooling. */
static inline ag_axis ag_forward_axis(int32_t outputs, int32_t size, int32_t taps, int32_t stride,
                                      int32_t pad, int32_t dilation) {
    return (ag_axis){0, 1, outputs, -pad, stride, dilation, size, 0, 1, taps};
}

/* Its adjoint: phase `phase` of `stride`, the elements of x that are reached by the same taps, the last tap
 * first. */
static inline ag_axis ag_adjoint_axis(int32_t phase, int32_t outputs, int32_t size, int32_t taps,
                                      int32_t stride, int32_t pad, int32_t dilation) {
    ag_axis axis = {phase, stride, (outputs - phase + stride - 1) / stride, 0, 1, 1, size, 0, 1, 0};
    for (int32_t tap = taps - 1; tap >= 0; tap--) {
        const int32_t position = phase + pad - tap * dilation;
        if (position % stride == 0) {
            if (axis.taps == 0) {
                axis.w = tap;
                axis.in = position / stride;
            } else if (axis.taps == 1) {
                axis.w_tap = tap - axis.w;
                axis.in_tap = position / stride - axis.in;
            }
            axis.taps++;
        }
    }
    return axis;
}

/* Windows begin ... end - 1 have the same valid taps first ... last - 1; none where last <= first. */
typedef struct {
    int32_t begin, end, first, last;
} ag_tap_range;

/* The range that starts at window `begin`, of `windows` along an axis of `extent` elements. Window p starts
 * at p * stride - pad; its `taps` elements are `dilation` apart. */
ALWAYS_INLINE ag_tap_range ag_tap_range_from(int32_t begin, int32_t windows, int32_t stride, int32_t pad,
                                             int32_t taps, int32_t dilation, int32_t extent) {
    const int32_t start = begin * stride - pad, reach = (taps - 1) * dilation;
    ag_tap_range s;
    s.begin = begin;
    s.end = begin + 1;
    s.first = 0;
    s.last = taps;
    if (start >= 0 && start + reach < extent) {
        const int32_t end = (extent - 1 - reach + pad) / stride + 1;
        s.end = end < windows ? end : windows;
        return s;
    }
    if (start < 0) {
        s.first = (dilation - 1 - start) / dilation;
    }
    if (start + reach >= extent) {
        s.last = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
    }
    return s;
}

static inline ag_tap_range ag_axis_range(const ag_axis *axis, int32_t begin) {
    return ag_tap_range_from(begin, axis->count, axis->in_step, -axis->in, axis->taps, axis->in_tap,
                             axis->size);
}

/* The windows along an axis for which a given tap is inside x: begin ... end - 1, none where end <= begin. */
typedef struct {
    int32_t begin, end;
} ag_window_range;

/* For the tap at `offset` from the start of the window; window p starts at p * stride. */
static inline ag_window_range ag_windows_with_tap(int32_t offset, int32_t windows, int32_t stride,
                                                  int32_t extent) {
    ag_window_range r;
    r.begin = offset < 0 ? (stride - 1 - offset) / stride : 0;
    r.end = offset >= extent ? 0 : (extent - 1 - offset) / stride + 1;
    r.end = r.end < windows ? r.end : windows;
    return r;
}

/* How many of `taps` elements, `dilation` apart, are before one that is `distance` after the first. */
static inline int32_t ag_before(int32_t distance, int32_t dilation, int32_t taps) {
    const int32_t before = (distance + dilation - 1) / dilation;
    return before < 0 ? 0 : before > taps ? taps : before;
}

#endif
