/* Gradients of convolutions of which one operand is quantised. SXTAB extends a byte of a word and subtracts
 * the zero. */
#include <stdint.h>

/* clang-format off */
#define FOUR_TO_FLOATS                                                                      \
    "ldr r4, [%[q]], #4\n"                                                                  \
    "sxtab r5, %[offset], r4\n sxtab r6, %[offset], r4, ror #8\n vmov s0, s1, r5, r6\n"      \
    "sxtab r5, %[offset], r4, ror #16\n sxtab r6, %[offset], r4, ror #24\n vmov s2, s3, r5, r6\n" \
    "vcvt.f32.s32 s0, s0\n vcvt.f32.s32 s1, s1\n vcvt.f32.s32 s2, s2\n vcvt.f32.s32 s3, s3\n" \
    "vstm %[x]!, {s0-s3}\n"

/* `count` integers less zero become floats. */
static inline void to_floats(const int8_t *q, int32_t count, int32_t zero, float *x) {
    int32_t more = count - 8; /* than the next 8 */
    if (more >= 0) {
        __asm__ volatile(
            "1:" FOUR_TO_FLOATS FOUR_TO_FLOATS
            "subs %[more], #8\n bge 1b\n"
            : [q] "+r"(q), [x] "+r"(x), [more] "+r"(more)
            : [offset] "r"(-zero)
            : "r4", "r5", "r6", "s0", "s1", "s2", "s3", "cc", "memory");
    }
    for (int32_t i = 0; i < more + 8; i++) {
        x[i] = (float)(q[i] - zero);
    }
}
/* clang-format on */

#define AG_TO_FLOATS to_floats
#include "tiles/gradients_s8.c"
