/* Vectors of one float; VLDM and VSTM move up to twelve of them. */
#ifndef AG_ARMV7EM_VEC_H
#define AG_ARMV7EM_VEC_H

#include "tiles/helpers.h"

#define AG_MOVING_POINTERS 1
#define AG_AXPY_ROWS_ASSEMBLY 1

#include "tiles/floats.h"
#include "tiles/moves.h"
#include "tiles/factors.h"

typedef struct {
    vec val[RUN];
} vecs;

/* Adjacent registers as variables v0, v1, ...; EACH applies `of` to each number. */
#define FLOATS_4(a, b, c, d)                                                                                 \
    register vec v0 __asm__("s" #a), v1 __asm__("s" #b), v2 __asm__("s" #c), v3 __asm__("s" #d)
#define FLOATS_8(a, b, c, d, e, f, g, h)                                                                     \
    FLOATS_4(a, b, c, d);                                                                                    \
    register vec v4 __asm__("s" #e), v5 __asm__("s" #f), v6 __asm__("s" #g), v7 __asm__("s" #h)
#define FLOATS_12(a, b, c, d, e, f, g, h, i, j, k, l)                                                        \
    FLOATS_8(a, b, c, d, e, f, g, h);                                                                        \
    register vec v8 __asm__("s" #i), v9 __asm__("s" #j), v10 __asm__("s" #k), v11 __asm__("s" #l)
#define EACH_4(of) of(0), of(1), of(2), of(3)
#define EACH_8(of) EACH_4(of), of(4), of(5), of(6), of(7)
#define EACH_12(of) EACH_8(of), of(8), of(9), of(10), of(11)
#define OUTPUT(i) "=t"(v##i)
#define INPUT(i) "t"(v##i)
#define VALUE(i) v##i
#define FROM_RUN(i) v##i = r.val[i]

/* One case of a function with the parameters `count`, a constant number of floats, and p. */
#define NEXT_RUN(floats, registers, list)                                                                    \
    if (count == (floats)) {                                                                                 \
        registers;                                                                                           \
        __asm__ volatile("vldmia %0!, " list : "+r"(*p), EACH_##floats(OUTPUT) : : "memory");                \
        return (vecs){{EACH_##floats(VALUE)}};                                                               \
    }
#define LOAD_RUN(floats, registers, list)                                                                    \
    if (count == (floats)) {                                                                                 \
        registers;                                                                                           \
        __asm__ volatile("vldm %[p], " list : EACH_##floats(OUTPUT) : [p] "r"(p) : "memory");                \
        return (vecs){{EACH_##floats(VALUE)}};                                                               \
    }
#define PUT_RUN(floats, registers, list)                                                                     \
    if (count == (floats)) {                                                                                 \
        registers;                                                                                           \
        EACH_##floats(FROM_RUN);                                                                             \
        __asm__ volatile("vstmia %0!, " list : "+r"(*p) : EACH_##floats(INPUT) : "memory");                  \
    }
/* HELD: a run that is used again after others are loaded. NEXT, and SECOND beside it: runs of at most eight
 * floats that are used at once; NEXT_12 has none beside it. FIRST: sums or factors of rows. */
#define HELD_12 FLOATS_12(8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
#define HELD_8 FLOATS_8(8, 9, 10, 11, 12, 13, 14, 15)
#define HELD_4 FLOATS_4(8, 9, 10, 11)
#define NEXT_12 FLOATS_12(20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31)
#define NEXT_8 FLOATS_8(16, 17, 18, 19, 20, 21, 22, 23)
#define NEXT_4 FLOATS_4(16, 17, 18, 19)
#define SECOND_8 FLOATS_8(24, 25, 26, 27, 28, 29, 30, 31)
#define SECOND_4 FLOATS_4(24, 25, 26, 27)
#define FIRST_8 FLOATS_8(0, 1, 2, 3, 4, 5, 6, 7)
#define FIRST_4 FLOATS_4(0, 1, 2, 3)

ALWAYS_INLINE vecs held_run(int32_t count, const float **p) {
    NEXT_RUN(12, HELD_12, "{s8-s19}");
    NEXT_RUN(8, HELD_8, "{s8-s15}");
    NEXT_RUN(4, HELD_4, "{s8-s11}");
    return (vecs){{0}};
}

ALWAYS_INLINE vecs next_run(int32_t count, const float **p) {
    NEXT_RUN(12, NEXT_12, "{s20-s31}");
    NEXT_RUN(8, NEXT_8, "{s16-s23}");
    NEXT_RUN(4, NEXT_4, "{s16-s19}");
    return (vecs){{0}};
}

ALWAYS_INLINE vecs second_run(int32_t count, const float **p) {
    NEXT_RUN(8, SECOND_8, "{s24-s31}");
    NEXT_RUN(4, SECOND_4, "{s24-s27}");
    return (vecs){{0}};
}

ALWAYS_INLINE vecs load_run(int32_t count, const float *p) {
    LOAD_RUN(12, NEXT_12, "{s20-s31}");
    LOAD_RUN(4, NEXT_4, "{s16-s19}");
    return (vecs){{0}};
}

ALWAYS_INLINE void put_run(int32_t count, float **p, vecs r) {
    PUT_RUN(12, NEXT_12, "{s20-s31}");
    PUT_RUN(4, NEXT_4, "{s16-s19}");
}

ALWAYS_INLINE vecs load_first(int32_t count, const float *p) {
    LOAD_RUN(8, FIRST_8, "{s0-s7}");
    LOAD_RUN(4, FIRST_4, "{s0-s3}");
    return (vecs){{0}};
}

ALWAYS_INLINE void put_first(int32_t count, float **p, vecs r) {
    PUT_RUN(8, FIRST_8, "{s0-s7}");
    PUT_RUN(4, FIRST_4, "{s0-s3}");
}

/* clang-format off */
#define FOUR_TO_FLOATS                                                                      \
    "ldr r4, [%[q]], #4\n"                                                                  \
    "sxtab r5, %[offset], r4\n sxtab r6, %[offset], r4, ror #8\n vmov s0, s1, r5, r6\n"      \
    "sxtab r5, %[offset], r4, ror #16\n sxtab r6, %[offset], r4, ror #24\n vmov s2, s3, r5, r6\n" \
    "vcvt.f32.s32 s0, s0\n vcvt.f32.s32 s1, s1\n vcvt.f32.s32 s2, s2\n vcvt.f32.s32 s3, s3\n" \
    "vstm %[x]!, {s0-s3}\n"

/* `count` integers less zero become floats: SXTAB extends a byte of a word and subtracts the zero. */
static inline void ag_to_floats(const int8_t *q, int32_t count, int32_t zero, float *x) {
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

#include "pack_b.h"

#endif
