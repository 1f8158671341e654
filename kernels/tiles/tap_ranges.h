/* Which elements of a window lie inside an axis, for all windows along it. */
#ifndef AG_TILES_TAP_RANGES_H
#define AG_TILES_TAP_RANGES_H

#include <stdint.h>

/* Windows begin ... end - 1 have the same elements inside: first ... last - 1; none where last <= first. */
typedef struct {
    int32_t begin, end, first, last;
} ag_span;

/* The windows from `begin` on that are alike, of `windows` along an axis of `extent` elements. Window p
 * begins at p * stride - pad; its `taps` elements are `dilation` apart. */
static inline ag_span ag_span_from(int32_t begin, int32_t windows, int32_t stride, int32_t pad, int32_t taps,
                                   int32_t dilation, int32_t extent) {
    const int32_t start = begin * stride - pad, reach = (taps - 1) * dilation;
    ag_span s;
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

#endif
