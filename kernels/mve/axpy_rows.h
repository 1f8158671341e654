/* What gradients of pooled convolutions add to, four floats at a time; the last ones of a row by predication.
 */
#ifndef AG_AXPY_ROWS_MVE_H
#define AG_AXPY_ROWS_MVE_H

#include <stdint.h>

/* to += factor * from for `rows` rows of `run` floats, >= 1 of both; the skips, in bytes, lie between the end
 * of a row and the next one. */
static inline void ag_axpy_rows(float *to, int32_t to_skip, const float *from, int32_t from_skip,
                                int32_t rows, int32_t run, float factor) {
    for (; rows > 0; rows--) {
        const float *end = from + run;
        float *behind = to + run;
        __asm__ volatile("dlstp.32 lr, %[run]\n"
                         "1: vldrw.32 q1, [%[from]], #16\n"
                         "vldrw.32 q0, [%[to]]\n"
                         "vfma.f32 q0, q1, %[factor]\n"
                         "vstrw.32 q0, [%[to]], #16\n"
                         "letp lr, 1b\n"
                         : [to] "+r"(to), [from] "+r"(from)
                         : [run] "r"(run), [factor] "r"(factor)
                         : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "lr", "memory");
        to = behind + to_skip / (int32_t)sizeof(float);
        from = end + from_skip / (int32_t)sizeof(float);
    }
}

/* Zeros. */
static inline void ag_zero_floats(float *to, int32_t count) {
    __asm__ volatile("vmov.i32 q0, #0\n"
                     "dlstp.32 lr, %[count]\n"
                     "1: vstrw.32 q0, [%[to]], #16\n"
                     "letp lr, 1b\n"
                     : [to] "+r"(to)
                     : [count] "r"(count)
                     : "s0", "s1", "s2", "s3", "lr", "memory");
}

#endif
