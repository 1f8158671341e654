/* Splits the windows along one axis into ranges whose valid taps (those inside the image) are the same.
 *
 *     5 taps, stride 1, pad 2, 11 elements (x: padding)
 *     window 0         x x 1 1 1               begin = 0, end = 1, first = 2, last = 5
 *     window 1           x 1 1 1 1             begin = 1, end = 2, first = 1, last = 5
 *     windows 2 .. 8       1 1 1 1 1  ...      begin = 2, end = 9, first = 0, last = 5 */
#ifndef AG_TILES_TAP_RANGES_H
#define AG_TILES_TAP_RANGES_H

#include <stdint.h>

/* Windows begin ... end - 1 have the same valid taps first ... last - 1; none where last <= first. */
typedef struct {
    int32_t begin, end, first, last;
} ag_tap_range;

/* The range that starts at window `begin`, of `windows` along an axis of `extent` elements. Window p starts
 * at p * stride - pad; its `taps` elements are `dilation` apart. */
static inline ag_tap_range ag_tap_range_from(int32_t begin, int32_t windows, int32_t stride, int32_t pad,
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

/* How many of `taps` elements, `dilation` apart, are before one that is `distance` after the first. */
static inline int32_t ag_before(int32_t distance, int32_t dilation, int32_t taps) {
    const int32_t before = (distance + dilation - 1) / dilation;
    return before < 0 ? 0 : before > taps ? taps : before;
}

#endif
