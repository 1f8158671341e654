/* Row-wise axpy for the gradients of pooled convolutions, four floats at a time; the tail of a row is
 * predicated. */
#ifndef AG_AXPY_ROWS_MVE_H
#define AG_AXPY_ROWS_MVE_H

#include <stdint.h>

/* dst += factor * src for `rows` rows of `row_length` floats, both >= 1; the skips, in bytes, are the gaps
 * between the end of a row and the start of the next one. */
static inline void ag_axpy_rows(float *dst, int32_t dst_skip, const float *src, int32_t src_skip,
                                int32_t rows, int32_t row_length, float factor) {
    for (; rows > 0; rows--) {
        const float *src_end = src + row_length;
        float *dst_end = dst + row_length;
        __asm__ volatile("dlstp.32 lr, %[row_length]\n"
                         "1: vldrw.32 q1, [%[src]], #16\n"
                         "vldrw.32 q0, [%[dst]]\n"
                         "vfma.f32 q0, q1, %[factor]\n"
                         "vstrw.32 q0, [%[dst]], #16\n"
                         "letp lr, 1b\n"
                         : [dst] "+r"(dst), [src] "+r"(src)
                         : [row_length] "r"(row_length), [factor] "r"(factor)
                         : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "lr", "memory");
        dst = dst_end + dst_skip / (int32_t)sizeof(float);
        src = src_end + src_skip / (int32_t)sizeof(float);
    }
}

#endif
