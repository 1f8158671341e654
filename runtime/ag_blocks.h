/* Blocks of four or eight floats that generated loops load and store (codegen/loops/block_moves.py).
 *
 * AG_LOAD_BLOCK(k, v, p): v[0] = p[0], ..., all of the array v; AG_STORE_BLOCK(k, p, v): the other way. With
 * Arm's single-precision FPU each is one VLDM or VSTM, from the k-th four of registers on, k from 0 to 5:
 * blocks that are in use at the same time have other registers, and compilers compute in these. Elsewhere k
 * means nothing. The zeros take no instruction. GCC looks for what is stored in such a variable before it is
 * read, back to the beginning of the function if need be, and in long functions gives up, with every local
 * array in memory.
 *
 * AG_LOAD_NEXT(k, v, p), AG_STORE_NEXT(k, p, v): the same, and p moves to the next block, by the same
 * instruction. AG_MOVE(p, n): p += n, by an addition of its own in each iteration of a loop, where compilers
 * would add an index to each pointer.
 *
 * AG_STORE_POSITIVE(k, p, v), AG_STORE_NEXT_POSITIVE(k, p, v): p[0] = v[0] <= 0 ? 0 : v[0], ...
 * AG_STORE_LIMITED(k, p, v, high), AG_STORE_NEXT_LIMITED(k, p, v, high): the same, and high where it is more;
 * high is positive and finite. With that FPU, in core registers, where BIC with the sign of a number is 0 for
 * a negative one; a NaN must be 0x7fc00000. All that arithmetic computes between ag_begin_default_nan() and
 * ag_end_default_nan() are. Then 0x400000 more is the lowest integer, which QADD leaves as it is: it limits
 * other numbers where they are `high` plus ag_from_limit(high). */
#ifndef AG_BLOCKS_H
#define AG_BLOCKS_H

#include <stdint.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && defined(__thumb2__) &&              \
    defined(__ARM_FP) && defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)
/* clang-format off */
#define AG_EACH(operation) operation("r4") operation("r5") operation("r6") operation("r8")
#define AG_LOWER(r) "bic " r ", " r ", " r ", asr #31\n\t"
#define AG_LIMITED(r) "add " r ", #0x400000\n\tqadd " r ", " r ", %[most]\n\tsub " r ", %[back]\n\t"
#define AG_POSITIVE(first, second, third, fourth)                                                            \
    "vmov r4, r5, " first ", " second "\n\tvmov r6, r8, " third ", " fourth "\n\t" AG_EACH(AG_LOWER)
/* clang-format on */

/* From a positive number, 0x400000 more than its bits, to the largest integer. */
static inline int32_t ag_from_limit(float high) {
    const union {
        float number;
        int32_t bits;
    } limit = {high};
    return 0x7fffffff - 0x400000 - limit.bits;
}

/* The memory of a block. */
typedef struct {
    float number[4];
} ag_four;
typedef struct {
    float number[8];
} ag_eight;

#define AG_INLINE static inline __attribute__((always_inline, unused))
/* Variables in registers: four, or four more, that hold v or, for asm to write to them, zeros. */
#define AG_FOUR(v0, v1, v2, v3, first, second, third, fourth)                                                \
    register float a __asm__(first) = v0, b __asm__(second) = v1;                                            \
    register float c __asm__(third) = v2, d __asm__(fourth) = v3
#define AG_FOUR_MORE(v4, v5, v6, v7, fifth, sixth, seventh, eighth)                                          \
    register float e __asm__(fifth) = v4, f __asm__(sixth) = v5;                                             \
    register float g __asm__(seventh) = v6, h __asm__(eighth) = v7
#define AG_BLOCK_REGISTERS(k, s0, s1, s2, s3, s4, s5, s6, s7)                                                \
    AG_INLINE void ag_load_block_##k(float *v, const float *p, int wide) {                                   \
        AG_FOUR(0.0f, 0.0f, 0.0f, 0.0f, s0, s1, s2, s3);                                                     \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(0.0f, 0.0f, 0.0f, 0.0f, s4, s5, s6, s7);                                            \
            __asm__("vldmia %8, {" s0 "-" s7 "}"                                                             \
                    : "=t"(a), "=t"(b), "=t"(c), "=t"(d), "=t"(e), "=t"(f), "=t"(g), "=t"(h)                 \
                    : "r"(p), "m"(*(const ag_eight *)p));                                                    \
            v[4] = e, v[5] = f, v[6] = g, v[7] = h;                                                          \
        } else {                                                                                             \
            __asm__("vldmia %4, {" s0 "-" s3 "}"                                                             \
                    : "=t"(a), "=t"(b), "=t"(c), "=t"(d)                                                     \
                    : "r"(p), "m"(*(const ag_four *)p));                                                     \
        }                                                                                                    \
        v[0] = a, v[1] = b, v[2] = c, v[3] = d;                                                              \
    }                                                                                                        \
    AG_INLINE const float *ag_load_next_##k(float *v, const float *p, int wide) {                            \
        AG_FOUR(0.0f, 0.0f, 0.0f, 0.0f, s0, s1, s2, s3);                                                     \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(0.0f, 0.0f, 0.0f, 0.0f, s4, s5, s6, s7);                                            \
            __asm__ volatile("vldmia %8!, {" s0 "-" s7 "}"                                                   \
                             : "=t"(a), "=t"(b), "=t"(c), "=t"(d), "=t"(e), "=t"(f), "=t"(g), "=t"(h),       \
                               "+r"(p)                                                                       \
                             :                                                                               \
                             : "memory");                                                                    \
            v[4] = e, v[5] = f, v[6] = g, v[7] = h;                                                          \
        } else {                                                                                             \
            __asm__ volatile("vldmia %4!, {" s0 "-" s3 "}"                                                   \
                             : "=t"(a), "=t"(b), "=t"(c), "=t"(d), "+r"(p)                                   \
                             :                                                                               \
                             : "memory");                                                                    \
        }                                                                                                    \
        v[0] = a, v[1] = b, v[2] = c, v[3] = d;                                                              \
        return p;                                                                                            \
    }                                                                                                        \
    AG_INLINE void ag_store_block_##k(float *p, const float *v, int wide) {                                  \
        AG_FOUR(v[0], v[1], v[2], v[3], s0, s1, s2, s3);                                                     \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(v[4], v[5], v[6], v[7], s4, s5, s6, s7);                                            \
            __asm__("vstmia %1, {" s0 "-" s7 "}"                                                             \
                    : "=m"(*(ag_eight *)p)                                                                   \
                    : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d), "t"(e), "t"(f), "t"(g), "t"(h));               \
        } else {                                                                                             \
            __asm__("vstmia %1, {" s0 "-" s3 "}"                                                             \
                    : "=m"(*(ag_four *)p)                                                                    \
                    : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d));                                               \
        }                                                                                                    \
    }                                                                                                        \
    AG_INLINE float *ag_store_next_##k(float *p, const float *v, int wide) {                                 \
        AG_FOUR(v[0], v[1], v[2], v[3], s0, s1, s2, s3);                                                     \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(v[4], v[5], v[6], v[7], s4, s5, s6, s7);                                            \
            __asm__ volatile("vstmia %0!, {" s0 "-" s7 "}"                                                   \
                             : "+r"(p)                                                                       \
                             : "t"(a), "t"(b), "t"(c), "t"(d), "t"(e), "t"(f), "t"(g), "t"(h)                \
                             : "memory");                                                                    \
        } else {                                                                                             \
            __asm__ volatile("vstmia %0!, {" s0 "-" s3 "}"                                                   \
                             : "+r"(p)                                                                       \
                             : "t"(a), "t"(b), "t"(c), "t"(d)                                                \
                             : "memory");                                                                    \
        }                                                                                                    \
        return p;                                                                                            \
    }                                                                                                        \
    AG_INLINE float *ag_store_next_positive_##k(float *p, const float *v, int wide) {                        \
        AG_FOUR(v[0], v[1], v[2], v[3], s0, s1, s2, s3);                                                     \
        __asm__ volatile(AG_POSITIVE(s0, s1, s2, s3) "stm %0!, {r4, r5, r6, r8}"                             \
                         : "+r"(p)                                                                           \
                         : "t"(a), "t"(b), "t"(c), "t"(d)                                                    \
                         : "r4", "r5", "r6", "r8", "memory");                                                \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(v[4], v[5], v[6], v[7], s4, s5, s6, s7);                                            \
            __asm__ volatile(AG_POSITIVE(s4, s5, s6, s7) "stm %0!, {r4, r5, r6, r8}"                         \
                             : "+r"(p)                                                                       \
                             : "t"(e), "t"(f), "t"(g), "t"(h)                                                \
                             : "r4", "r5", "r6", "r8", "memory");                                            \
        }                                                                                                    \
        return p;                                                                                            \
    }                                                                                                        \
    AG_INLINE float *ag_store_next_limited_##k(float *p, const float *v, float high, int wide) {             \
        const int32_t most = ag_from_limit(high), back = most + 0x400000;                                    \
        AG_FOUR(v[0], v[1], v[2], v[3], s0, s1, s2, s3);                                                     \
        __asm__ volatile(AG_POSITIVE(s0, s1, s2, s3) AG_EACH(AG_LIMITED) "stm %0!, {r4, r5, r6, r8}"         \
                         : "+r"(p)                                                                           \
                         : "t"(a), "t"(b), "t"(c), "t"(d), [most] "r"(most), [back] "r"(back)                \
                         : "r4", "r5", "r6", "r8", "memory", "cc");                                          \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(v[4], v[5], v[6], v[7], s4, s5, s6, s7);                                            \
            __asm__ volatile(AG_POSITIVE(s4, s5, s6, s7) AG_EACH(AG_LIMITED) "stm %0!, {r4, r5, r6, r8}"     \
                             : "+r"(p)                                                                       \
                             : "t"(e), "t"(f), "t"(g), "t"(h), [most] "r"(most), [back] "r"(back)            \
                             : "r4", "r5", "r6", "r8", "memory", "cc");                                      \
        }                                                                                                    \
        return p;                                                                                            \
    }
AG_BLOCK_REGISTERS(0, "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7")
AG_BLOCK_REGISTERS(1, "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11")
AG_BLOCK_REGISTERS(2, "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15")
AG_BLOCK_REGISTERS(3, "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19")
AG_BLOCK_REGISTERS(4, "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23")
AG_BLOCK_REGISTERS(5, "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27")
#undef AG_BLOCK_REGISTERS
#define AG_IS_WIDE(v) (sizeof(v) == 8 * sizeof(float))
#define AG_LOAD_NEXT(k, v, p) p = ag_load_next_##k(v, p, AG_IS_WIDE(v))
#define AG_STORE_NEXT(k, p, v) p = ag_store_next_##k(p, v, AG_IS_WIDE(v))
#define AG_STORE_NEXT_POSITIVE(k, p, v) p = ag_store_next_positive_##k(p, v, AG_IS_WIDE(v))
#define AG_STORE_NEXT_LIMITED(k, p, v, high) p = ag_store_next_limited_##k(p, v, high, AG_IS_WIDE(v))
#define AG_MOVE(p, n)                                                                                        \
    p += n;                                                                                                  \
    __asm__("" : "+r"(p))
#define AG_LOAD_BLOCK(k, v, p) ag_load_block_##k(v, p, AG_IS_WIDE(v))
#define AG_STORE_BLOCK(k, p, v) ag_store_block_##k(p, v, AG_IS_WIDE(v))
#define AG_STORE_POSITIVE(k, p, v) (void)ag_store_next_positive_##k(p, v, AG_IS_WIDE(v))
#define AG_STORE_LIMITED(k, p, v, high) (void)ag_store_next_limited_##k(p, v, high, AG_IS_WIDE(v))

static inline __attribute__((unused)) uint32_t ag_begin_default_nan(void) {
    uint32_t modes;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(modes) : : "memory");
    __asm__ volatile("vmsr fpscr, %0" : : "r"(modes | 1u << 25) : "memory");
    return modes;
}

static inline __attribute__((unused)) void ag_end_default_nan(uint32_t modes) {
    __asm__ volatile("vmsr fpscr, %0" : : "r"(modes) : "memory");
}
#else
#define AG_BLOCK_OF(v) ((int)(sizeof(v) / sizeof(float)))
static inline void ag_copy_block(float *to, const float *from, int count) {
    for (int k = 0; k < count; k++) {
        to[k] = from[k];
    }
}

static inline void ag_store_positive(float *p, const float *v, int count) {
    for (int k = 0; k < count; k++) {
        p[k] = v[k] <= 0.0f ? 0.0f : v[k];
    }
}

static inline void ag_store_limited(float *p, const float *v, float high, int count) {
    for (int k = 0; k < count; k++) {
        p[k] = v[k] <= 0.0f ? 0.0f : v[k] >= high ? high : v[k];
    }
}
#define AG_LOAD_NEXT(k, v, p) ag_copy_block(v, (p += AG_BLOCK_OF(v)) - AG_BLOCK_OF(v), AG_BLOCK_OF(v))
#define AG_STORE_NEXT(k, p, v) ag_copy_block((p += AG_BLOCK_OF(v)) - AG_BLOCK_OF(v), v, AG_BLOCK_OF(v))
#define AG_STORE_NEXT_POSITIVE(k, p, v)                                                                      \
    ag_store_positive((p += AG_BLOCK_OF(v)) - AG_BLOCK_OF(v), v, AG_BLOCK_OF(v))
#define AG_STORE_NEXT_LIMITED(k, p, v, high)                                                                 \
    ag_store_limited((p += AG_BLOCK_OF(v)) - AG_BLOCK_OF(v), v, high, AG_BLOCK_OF(v))
#define AG_MOVE(p, n) p += n
#define AG_LOAD_BLOCK(k, v, p) ag_copy_block(v, p, AG_BLOCK_OF(v))
#define AG_STORE_BLOCK(k, p, v) ag_copy_block(p, v, AG_BLOCK_OF(v))
#define AG_STORE_POSITIVE(k, p, v) ag_store_positive(p, v, AG_BLOCK_OF(v))
#define AG_STORE_LIMITED(k, p, v, high) ag_store_limited(p, v, high, AG_BLOCK_OF(v))

static inline uint32_t ag_begin_default_nan(void) {
    return 0;
}

static inline void ag_end_default_nan(uint32_t modes) {
    (void)modes;
}
#endif

#endif
