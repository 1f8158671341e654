/* Memory layouts of images and the number of windows, for the tests of convolutions and pools. */
#ifndef IMAGE_LAYOUT_H
#define IMAGE_LAYOUT_H

#include "compare.h"

typedef enum image_layout { DENSE, STRIDED, CHANNEL_FIRST, LAYOUTS } image_layout; /* of images */

static inline int32_t results(int32_t extent, int32_t pads, int32_t window, int32_t dilation,
                              int32_t stride) {
    return (extent + pads - (window - 1) * dilation - 1) / stride + 1;
}

/* Extents and strides of an image along n, h, w, c. */
static inline compare_layout image_strides(int32_t n, int32_t h, int32_t w, int32_t c, image_layout kind) {
    compare_layout layout = {{n, h, w, c}, {h * w * c, w * c, c, 1}};
    if (kind == STRIDED) {
        layout.stride[2] = c + 2;
        layout.stride[1] = w * (c + 2) + 1;
        layout.stride[0] = h * layout.stride[1] + 3;
    } else if (kind == CHANNEL_FIRST) {
        layout.stride[1] = w;
        layout.stride[2] = 1;
        layout.stride[3] = h * w;
    }
    return layout;
}

#endif
