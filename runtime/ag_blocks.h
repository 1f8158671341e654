/* Blocks of four floats that generated loops load and store (codegen/block_moves.py).
 *
 * AG_LOAD_BLOCK(k, v, p): v[0] = p[0], ... v[3] = p[3]; AG_STORE_BLOCK(k, p, v): the other way. With Arm's
 * single-precision FPU each is one VLDM or VSTM, of the k-th four of registers, k from 0 to 5: blocks that
 * are in use at the same time have different k, and compilers compute in these registers. Elsewhere k means
 * nothing. The zeros take no instruction. GCC looks for what is stored in such a variable before it is read,
 * back to the beginning of the function if need be, and in long functions gives up, with every local array in
 * memory.
 *
 * AG_LOAD_NEXT(k, v, p), AG_STORE_NEXT(k, p, v): the same, and p += 4, by the same instruction.
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

#define AG_BLOCK_REGISTERS(k, first, second, third, fourth)                                                  \
    static inline __attribute__((always_inline, unused)) void ag_load_block_##k(float *v, const float *p) {  \
        register float a __asm__(first) = 0.0f, b __asm__(second) = 0.0f;                                    \
        register float c __asm__(third) = 0.0f, d __asm__(fourth) = 0.0f;                                    \
        __asm__("vldmia %4, {" first "-" fourth "}"                                                          \
                : "=t"(a), "=t"(b), "=t"(c), "=t"(d)                                                         \
                : "r"(p), "m"(*(const float (*)[4])p));                                                      \
        v[0] = a, v[1] = b, v[2] = c, v[3] = d;                                                              \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) void ag_store_block_##k(float *p, const float *v) { \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        __asm__("vstmia %1, {" first "-" fourth "}"                                                          \
                : "=m"(*(float (*)[4])p)                                                                     \
                : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d));                                                   \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) void ag_store_positive_##k(float *p,                \
                                                                                    const float *v) {        \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        __asm__(AG_POSITIVE(first, second, third, fourth) "stm %1, {r4, r5, r6, r8}"                         \
                : "=m"(*(float (*)[4])p)                                                                     \
                : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d)                                                     \
                : "r4", "r5", "r6", "r8");                                                                   \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) void ag_store_limited_##k(float *p, const float *v, \
                                                                                   float high) {             \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        const int32_t most = ag_from_limit(high), back = most + 0x400000;                                    \
        __asm__(AG_POSITIVE(first, second, third, fourth) AG_EACH(AG_LIMITED) "stm %1, {r4, r5, r6, r8}"     \
                : "=m"(*(float (*)[4])p)                                                                     \
                : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d), [most] "r"(most), [back] "r"(back)                 \
                : "r4", "r5", "r6", "r8", "cc");                                                             \
    }
#define AG_NEXT_REGISTERS(k, first, second, third, fourth)                                                   \
    static inline __attribute__((always_inline, unused)) const float *ag_load_next_##k(float *v,             \
                                                                                       const float *p) {     \
        register float a __asm__(first) = 0.0f, b __asm__(second) = 0.0f;                                    \
        register float c __asm__(third) = 0.0f, d __asm__(fourth) = 0.0f;                                    \
        __asm__ volatile("vldmia %4!, {" first "-" fourth "}"                                                \
                         : "=t"(a), "=t"(b), "=t"(c), "=t"(d), "+r"(p)                                       \
                         :                                                                                   \
                         : "memory");                                                                        \
        v[0] = a, v[1] = b, v[2] = c, v[3] = d;                                                              \
        return p;                                                                                            \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) float *ag_store_next_##k(float *p,                  \
                                                                                  const float *v) {          \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        __asm__ volatile("vstmia %0!, {" first "-" fourth "}"                                                \
                         : "+r"(p)                                                                           \
                         : "t"(a), "t"(b), "t"(c), "t"(d)                                                    \
                         : "memory");                                                                        \
        return p;                                                                                            \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) float *ag_store_next_positive_##k(float *p,         \
                                                                                           const float *v) { \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        __asm__ volatile(AG_POSITIVE(first, second, third, fourth) "stm %0!, {r4, r5, r6, r8}"               \
                         : "+r"(p)                                                                           \
                         : "t"(a), "t"(b), "t"(c), "t"(d)                                                    \
                         : "r4", "r5", "r6", "r8", "memory");                                                \
        return p;                                                                                            \
    }                                                                                                        \
    static inline __attribute__((always_inline, unused)) float *ag_store_next_limited_##k(                   \
        float *p, const float *v, float high) {                                                              \
        register float a __asm__(first) = v[0], b __asm__(second) = v[1];                                    \
        register float c __asm__(third) = v[2], d __asm__(fourth) = v[3];                                    \
        const int32_t most = ag_from_limit(high), back = most + 0x400000;                                    \
        __asm__ volatile(AG_POSITIVE(first, second, third, fourth)                                           \
                             AG_EACH(AG_LIMITED) "stm %0!, {r4, r5, r6, r8}"                                 \
                         : "+r"(p)                                                                           \
                         : "t"(a), "t"(b), "t"(c), "t"(d), [most] "r"(most), [back] "r"(back)                \
                         : "r4", "r5", "r6", "r8", "memory", "cc");                                          \
        return p;                                                                                            \
    }
AG_BLOCK_REGISTERS(0, "s0", "s1", "s2", "s3")
AG_BLOCK_REGISTERS(1, "s4", "s5", "s6", "s7")
AG_BLOCK_REGISTERS(2, "s8", "s9", "s10", "s11")
AG_BLOCK_REGISTERS(3, "s12", "s13", "s14", "s15")
AG_BLOCK_REGISTERS(4, "s16", "s17", "s18", "s19")
AG_BLOCK_REGISTERS(5, "s20", "s21", "s22", "s23")
AG_NEXT_REGISTERS(0, "s0", "s1", "s2", "s3")
AG_NEXT_REGISTERS(1, "s4", "s5", "s6", "s7")
AG_NEXT_REGISTERS(2, "s8", "s9", "s10", "s11")
AG_NEXT_REGISTERS(3, "s12", "s13", "s14", "s15")
AG_NEXT_REGISTERS(4, "s16", "s17", "s18", "s19")
AG_NEXT_REGISTERS(5, "s20", "s21", "s22", "s23")
#undef AG_NEXT_REGISTERS
#undef AG_BLOCK_REGISTERS
#define AG_LOAD_NEXT(k, v, p) p = ag_load_next_##k(v, p)
#define AG_STORE_NEXT(k, p, v) p = ag_store_next_##k(p, v)
#define AG_STORE_NEXT_POSITIVE(k, p, v) p = ag_store_next_positive_##k(p, v)
#define AG_STORE_NEXT_LIMITED(k, p, v, high) p = ag_store_next_limited_##k(p, v, high)
#define AG_LOAD_BLOCK(k, v, p) ag_load_block_##k(v, p)
#define AG_STORE_BLOCK(k, p, v) ag_store_block_##k(p, v)
#define AG_STORE_POSITIVE(k, p, v) ag_store_positive_##k(p, v)
#define AG_STORE_LIMITED(k, p, v, high) ag_store_limited_##k(p, v, high)

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
static inline void ag_copy_block(float *to, const float *from) {
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
}
#define AG_LOAD_NEXT(k, v, p) ag_copy_block(v, (p += 4) - 4)
#define AG_STORE_NEXT(k, p, v) ag_copy_block((p += 4) - 4, v)
#define AG_STORE_NEXT_POSITIVE(k, p, v) ag_store_positive((p += 4) - 4, v)
#define AG_STORE_NEXT_LIMITED(k, p, v, high) ag_store_limited((p += 4) - 4, v, high)
#define AG_LOAD_BLOCK(k, v, p) ag_copy_block(v, p)
#define AG_STORE_BLOCK(k, p, v) ag_copy_block(p, v)

static inline void ag_store_positive(float *p, const float *v) {
    for (int k = 0; k < 4; k++) {
        p[k] = v[k] <= 0.0f ? 0.0f : v[k];
    }
}

static inline void ag_store_limited(float *p, const float *v, float high) {
    for (int k = 0; k < 4; k++) {
        p[k] = v[k] <= 0.0f ? 0.0f : v[k] >= high ? high : v[k];
    }
}
#define AG_STORE_POSITIVE(k, p, v) ag_store_positive(p, v)
#define AG_STORE_LIMITED(k, p, v, high) ag_store_limited(p, v, high)

static inline uint32_t ag_begin_default_nan(void) {
    return 0;
}

static inline void ag_end_default_nan(uint32_t modes) {
    (void)modes;
}
#endif

#endif
