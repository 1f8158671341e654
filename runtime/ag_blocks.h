/* Loops over blocks of four or eight floats, for cores that load and store several floats by one instruction.
 *
 *     AG_BLOCKS(i, count, j, 8, read(x_block, x), update(y_block, y)) {
 *         y_block[j] += x_block[j] * scale[i + j];
 *     }
 *
 * is, for i = 0, 8, 16, ... below count, a multiple of 8,
 *
 *     float x_block[8], y_block[8];
 *     x_block[0] = x[i]; ... y_block[7] = y[i + 7];
 *     for (int32_t j = 0; j < 8; j++) y_block[j] += x_block[j] * scale[i + j];
 *     y[i] = y_block[0]; ... y[i + 7] = y_block[7];
 *
 * With AG_DEBUG defined a count that is no such multiple fails an assertion.
 *
 * read(block, from): the block is loaded; write(block, to): it is stored; update(block, at): both;
 * replace(block, to): it is stored, and after element j of it is computed, no element j of the operand before
 * it is read. write_relu and replace_relu(block, to): max(block[j], 0) is stored; write_limited and
 * replace_limited(block, to, high): the same, limited to `high`, which is positive and finite. A NaN stays
 * NaN. Loops with one of these four are AG_RELU_BLOCKS.
 *
 * AG_BLOCK_ROWS(k, rows, j, 4, read(x_block, x, stride), ...): one block of each row; the pointer of each
 * operand moves by `stride` floats from row to row. AG_BLOCK(j, 4, read(x_block, x), ...): one block.
 *
 * With Arm's single-precision FPU a block is one VLDM or VSTM, whose registers follow from the position of
 * the operand, and compilers compute in these; `replace` takes the registers of the operand before it. The
 * other operands are among the first six with blocks of four, and among the first three with blocks of eight.
 * Elsewhere blocks are plain loops.
 *
 * GCC searches for the value of a register variable before it is read, back to the beginning of the function
 * if need be; in long functions it gives up and keeps every local array in memory. The variables are
 * therefore set to zeros, which takes no instruction. */
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

/* The largest int32_t less 0x400000 and the bits of `high`, a positive number. */
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
    AG_INLINE void ag_store_block_##k(const float *p, const float *v, int wide) {                            \
        AG_FOUR(v[0], v[1], v[2], v[3], s0, s1, s2, s3);                                                     \
        if (wide) {                                                                                          \
            AG_FOUR_MORE(v[4], v[5], v[6], v[7], s4, s5, s6, s7);                                            \
            __asm__("vstmia %1, {" s0 "-" s7 "}"                                                             \
                    : "=m"(*(ag_eight *)(uintptr_t)p)                                                        \
                    : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d), "t"(e), "t"(f), "t"(g), "t"(h));               \
        } else {                                                                                             \
            __asm__("vstmia %1, {" s0 "-" s3 "}"                                                             \
                    : "=m"(*(ag_four *)(uintptr_t)p)                                                         \
                    : "r"(p), "t"(a), "t"(b), "t"(c), "t"(d));                                               \
        }                                                                                                    \
    }                                                                                                        \
    AG_INLINE const float *ag_store_next_##k(const float *p, const float *v, int wide) {                     \
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
    AG_INLINE const float *ag_store_next_positive_##k(const float *p, const float *v, int wide) {            \
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
    AG_INLINE const float *ag_store_next_limited_##k(const float *p, const float *v, float high, int wide) { \
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
/* The first four registers of an operand. */
#define AG_BANK_4_0 0
#define AG_BANK_4_1 1
#define AG_BANK_4_2 2
#define AG_BANK_4_3 3
#define AG_BANK_4_4 4
#define AG_BANK_4_5 5
#define AG_BANK_8_0 0
#define AG_BANK_8_1 2
#define AG_BANK_8_2 4
#define AG_OF_BANK_(function, k) function##_##k
#define AG_OF_BANK(function, k) AG_OF_BANK_(function, k)
#define AG_LOAD(w, k, v, p) AG_OF_BANK(ag_load_block, AG_BANK_##w##_##k)(v, p, w == 8)
#define AG_STORE(w, k, p, v) AG_OF_BANK(ag_store_block, AG_BANK_##w##_##k)(p, v, w == 8)
#define AG_LOAD_NEXT(w, k, v, p) AG_OF_BANK(ag_load_next, AG_BANK_##w##_##k)(v, p, w == 8)
#define AG_STORE_NEXT(w, k, p, v) AG_OF_BANK(ag_store_next, AG_BANK_##w##_##k)(p, v, w == 8)
#define AG_STORE_RELU(w, k, p, v) AG_OF_BANK(ag_store_next_positive, AG_BANK_##w##_##k)(p, v, w == 8)
#define AG_STORE_LIMITED(w, k, p, v, high)                                                                   \
    AG_OF_BANK(ag_store_next_limited, AG_BANK_##w##_##k)(p, v, high, w == 8)
/* One addition in each iteration, where compilers would add an index to each pointer. */
static inline __attribute__((always_inline, unused)) const float *ag_moved(const float *p, int32_t n) {
    p += n;
    __asm__("" : "+r"(p));
    return p;
}

/* Numbers are stored as max(x, 0) in core registers, where BIC with the sign of a number is 0 for a negative
 * one. In the mode of default NaNs every NaN that arithmetic computes is 0x7fc00000, and 0x400000 more is the
 * lowest integer. QADD of ag_from_limit(high) does not saturate for it, and saturates for numbers above
 * `high`. */
#define AG_BLOCKS_FUNCTION static __attribute__((noinline, unused))
#define AG_ROLLED _Pragma("GCC unroll 1")

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
#define AG_BLOCKS_FUNCTION static inline
#define AG_ROLLED

static inline void ag_load(float *block, const float *from, int width) {
    for (int k = 0; k < width; k++) {
        block[k] = from[k];
    }
}

static inline const float *ag_store(const float *to, const float *block, int width) {
    float *const p = (float *)(uintptr_t)to;
    for (int k = 0; k < width; k++) {
        p[k] = block[k];
    }
    return to + width;
}

static inline const float *ag_load_next(float *block, const float *from, int width) {
    ag_load(block, from, width);
    return from + width;
}

static inline const float *ag_store_relu(const float *to, const float *block, int width) {
    float *const p = (float *)(uintptr_t)to;
    for (int k = 0; k < width; k++) {
        p[k] = block[k] <= 0.0f ? 0.0f : block[k];
    }
    return to + width;
}

static inline const float *ag_store_limited(const float *to, const float *block, float high, int width) {
    float *const p = (float *)(uintptr_t)to;
    for (int k = 0; k < width; k++) {
        p[k] = block[k] <= 0.0f ? 0.0f : block[k] >= high ? high : block[k];
    }
    return to + width;
}
#define AG_LOAD(w, k, v, p) ag_load(v, p, w)
#define AG_STORE(w, k, p, v) (void)ag_store(p, v, w)
#define AG_LOAD_NEXT(w, k, v, p) ag_load_next(v, p, w)
#define AG_STORE_NEXT(w, k, p, v) ag_store(p, v, w)
#define AG_STORE_RELU(w, k, p, v) ag_store_relu(p, v, w)
#define AG_STORE_LIMITED(w, k, p, v, high) ag_store_limited(p, v, high, w)
static inline const float *ag_moved(const float *p, int32_t n) {
    return p + n;
}

static inline uint32_t ag_begin_default_nan(void) {
    return 0;
}

static inline void ag_end_default_nan(uint32_t modes) {
    (void)modes;
}
#endif

/* For each of up to seven operands, with the width of blocks and the number of the operand. */
#define AG_COUNT(...) AG_COUNT_(__VA_ARGS__, 7, 6, 5, 4, 3, 2, 1, 0)
#define AG_COUNT_(a, b, c, d, e, f, g, count, ...) count
#define AG_JOINED(a, b) AG_JOINED_(a, b)
#define AG_JOINED_(a, b) a##b
#define AG_MAP(f, w, ...) AG_JOINED(AG_MAP_, AG_COUNT(__VA_ARGS__))(f, w, __VA_ARGS__)
#define AG_MAP_1(f, w, a) AG_OPERAND(f, w, 0, a)
#define AG_MAP_2(f, w, a, b) AG_MAP_1(f, w, a), AG_OPERAND(f, w, 1, b)
#define AG_MAP_3(f, w, a, b, c) AG_MAP_2(f, w, a, b), AG_OPERAND(f, w, 2, c)
#define AG_MAP_4(f, w, a, b, c, d) AG_MAP_3(f, w, a, b, c), AG_OPERAND(f, w, 3, d)
#define AG_MAP_5(f, w, a, b, c, d, e) AG_MAP_4(f, w, a, b, c, d), AG_OPERAND(f, w, 4, e)
#define AG_MAP_6(f, w, a, b, c, d, e, g) AG_MAP_5(f, w, a, b, c, d, e), AG_OPERAND(f, w, 5, g)
#define AG_MAP_7(f, w, a, b, c, d, e, g, h) AG_MAP_6(f, w, a, b, c, d, e, g), AG_OPERAND(f, w, 6, h)
#define AG_OPERAND(f, w, k, operand) AG_APPLIED(f, w, k, AG_KIND_##operand)
#define AG_APPLIED(f, ...) f(__VA_ARGS__)

/* An operand as the place of its registers, whether it is loaded, how it is stored, and its arguments. */
#define AG_KIND_read(...) ag_own, ag_load, ag_keep, __VA_ARGS__
#define AG_KIND_update(...) ag_own, ag_load, ag_store, __VA_ARGS__
#define AG_KIND_write(...) ag_own, ag_new, ag_store, __VA_ARGS__
#define AG_KIND_write_relu(...) ag_own, ag_new, ag_relu, __VA_ARGS__
#define AG_KIND_write_limited(...) ag_own, ag_new, ag_limited, __VA_ARGS__
#define AG_KIND_replace(...) ag_before, ag_new, ag_store, __VA_ARGS__
#define AG_KIND_replace_relu(...) ag_before, ag_new, ag_relu, __VA_ARGS__
#define AG_KIND_replace_limited(...) ag_before, ag_new, ag_limited, __VA_ARGS__
#define AG_PLACE_ag_own(k) k
#define AG_PLACE_ag_before(k) AG_BEFORE_##k
#define AG_BEFORE_1 0
#define AG_BEFORE_2 1
#define AG_BEFORE_3 2
#define AG_BEFORE_4 3
#define AG_BEFORE_5 4
#define AG_BEFORE_6 5

/* Declarations for an operand: the address of its next block, and the block. */
#define AG_AT(w, k, place, load, store, block, ...) *block##_at = (AG_FIRST(__VA_ARGS__, 0))
#define AG_FIRST(p, ...) p
#define AG_ARRAY(w, k, place, load, store, block, ...) block[w]

/* Before the elements of a block are computed: for consecutive blocks, and for others. */
#define AG_BEGIN(w, k, place, load, store, block, ...) AG_BEGIN_##load##_##store(w, k, block)
#define AG_BEGIN_ag_load_ag_keep(w, k, block) block##_at = AG_LOAD_NEXT(w, k, block, block##_at)
#define AG_BEGIN_ag_load_ag_store(w, k, block) AG_LOAD(w, k, block, block##_at)
#define AG_BEGIN_ag_new_ag_store(w, k, block) (void)0
#define AG_BEGIN_ag_new_ag_relu(w, k, block) (void)0
#define AG_BEGIN_ag_new_ag_limited(w, k, block) (void)0
#define AG_ONE_BEGIN(w, k, place, load, store, block, ...) AG_ONE_BEGIN_##load(w, k, block)
#define AG_ONE_BEGIN_ag_load(w, k, block) AG_LOAD(w, k, block, block##_at)
#define AG_ONE_BEGIN_ag_new(w, k, block) (void)0

/* After the elements of a block are computed: for consecutive blocks, for one block in each row, and for one
 * block. */
#define AG_END(w, k, place, load, store, block, ...)                                                         \
    AG_END_##store(w, AG_PLACE_##place(k), block, __VA_ARGS__)
#define AG_END_ag_keep(w, k, block, p) (void)0
#define AG_END_ag_store(w, k, block, p) block##_at = AG_STORE_NEXT(w, k, block##_at, block)
#define AG_END_ag_relu(w, k, block, p) block##_at = AG_STORE_RELU(w, k, block##_at, block)
#define AG_END_ag_limited(w, k, block, p, high) block##_at = AG_STORE_LIMITED(w, k, block##_at, block, high)
#define AG_ROW_END(w, k, place, load, store, block, ...)                                                     \
    AG_ROW_END_##store(w, AG_PLACE_##place(k), block, __VA_ARGS__)
#define AG_ROW_END_ag_keep(w, k, block, p, stride) block##_at = ag_moved(block##_at, stride)
#define AG_ROW_END_ag_store(w, k, block, p, stride)                                                          \
    AG_STORE(w, k, block##_at, block), block##_at = ag_moved(block##_at, stride)
#define AG_ROW_END_ag_relu(w, k, block, p, stride)                                                           \
    (void)AG_STORE_RELU(w, k, block##_at, block), block##_at = ag_moved(block##_at, stride)
#define AG_ROW_END_ag_limited(w, k, block, p, stride, high)                                                  \
    (void)AG_STORE_LIMITED(w, k, block##_at, block, high), block##_at = ag_moved(block##_at, stride)
#define AG_ONE_END(w, k, place, load, store, block, ...)                                                     \
    AG_ONE_END_##store(w, AG_PLACE_##place(k), block, __VA_ARGS__)
#define AG_ONE_END_ag_keep(w, k, block, p) (void)0
#define AG_ONE_END_ag_store(w, k, block, p) AG_STORE(w, k, block##_at, block)
#define AG_ONE_END_ag_relu(w, k, block, p) (void)AG_STORE_RELU(w, k, block##_at, block)
#define AG_ONE_END_ag_limited(w, k, block, p, high) (void)AG_STORE_LIMITED(w, k, block##_at, block, high)

/* Loops that run once: around a loop over blocks, for the pointers to them, and around the loop over the
 * elements of one, to load before it and to store after it. */
#define AG_POINTERS(w, ...)                                                                                  \
    for (const float AG_MAP(AG_AT, w, __VA_ARGS__), *ag_once = (const float *)sizeof(float); ag_once;        \
         ag_once = 0)
#define AG_ELEMENTS(begin, end, j, w, ...)                                                                   \
    for (float AG_MAP(AG_ARRAY, w, __VA_ARGS__), ag_flag[1], *ag_todo = ag_flag;                             \
         ag_todo && (AG_MAP(begin, w, __VA_ARGS__), 1); AG_MAP(end, w, __VA_ARGS__), ag_todo = 0)            \
        for (int32_t j = 0; j < w; j++)
#ifdef AG_DEBUG
#include <assert.h>
#define AG_WHOLE_BLOCKS(count, w) (assert((count) % w == 0), (count))
#else
#define AG_WHOLE_BLOCKS(count, w) (count)
#endif
#define AG_BLOCKS(i, count, j, w, ...)                                                                       \
    AG_POINTERS(w, __VA_ARGS__)                                                                              \
    AG_ROLLED for (int32_t i = 0; i < AG_WHOLE_BLOCKS(count, w); i += w)                                     \
        AG_ELEMENTS(AG_BEGIN, AG_END, j, w, __VA_ARGS__)
#define AG_BLOCK_ROWS(i, rows, j, w, ...)                                                                    \
    AG_POINTERS(w, __VA_ARGS__)                                                                              \
    AG_ROLLED for (int32_t i = 0; i < (rows); i++) AG_ELEMENTS(AG_ONE_BEGIN, AG_ROW_END, j, w, __VA_ARGS__)
#define AG_BLOCK(j, w, ...)                                                                                  \
    AG_POINTERS(w, __VA_ARGS__) AG_ELEMENTS(AG_ONE_BEGIN, AG_ONE_END, j, w, __VA_ARGS__)
#define AG_KEEPING_NAN                                                                                       \
    for (uint32_t ag_modes = ag_begin_default_nan(), ag_open = 1; ag_open;                                   \
         ag_end_default_nan(ag_modes), ag_open = 0)
#define AG_RELU_BLOCKS(...) AG_KEEPING_NAN AG_BLOCKS(__VA_ARGS__)
#define AG_RELU_BLOCK_ROWS(...) AG_KEEPING_NAN AG_BLOCK_ROWS(__VA_ARGS__)
#define AG_RELU_BLOCK(...) AG_KEEPING_NAN AG_BLOCK(__VA_ARGS__)

/* Copies `count` floats to a place that does not begin inside of them. */
AG_BLOCKS_FUNCTION void ag_copy(float *to, const float *from, int32_t count) {
    const int32_t eights = count - count % 8, fours = count - count % 4;
    AG_BLOCKS(i, eights, j, 8, read(from_block, from), replace(to_block, to)) {
        to_block[j] = from_block[j];
    }
    if (fours > eights) {
        AG_BLOCK(j, 4, read(from_block, from + eights), replace(to_block, to + eights)) {
            to_block[j] = from_block[j];
        }
    }
    for (int32_t i = fours; i < count; i++) {
        to[i] = from[i];
    }
}

AG_BLOCKS_FUNCTION void ag_fill(float *to, float value, int32_t count) {
    const int32_t eights = count - count % 8;
    AG_BLOCKS(i, eights, j, 8, write(to_block, to)) {
        to_block[j] = value;
    }
    for (int32_t i = eights; i < count; i++) {
        to[i] = value;
    }
}

#endif
