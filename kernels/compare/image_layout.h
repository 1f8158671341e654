/* Memory layouts of images and the number of windows, for the tests of convolutions and pools. */
#ifndef IMAGE_LAYOUT_H
#define IMAGE_LAYOUT_H

#include "compare.h"

typedef enum image_layout { DENSE, STRIDED, CHANNEL_FIRST } image_layout; /* of images */

static inline int32_t results(int32_t extent, int32_t pads, int32_t window, int32_t dilation,
                              int32_t stride) {
    return (extent + pads - (window - 1) * dilation - 1) / stride + 1;
}

#endif
