/* Macros that generated C writes before loops, and before functions of loops.
 *
 * AG_IVDEP: no iteration reads or writes what another one writes (lowering/loops/independent_loops.py). A
 * compiler need not check at run time whether the arrays overlap, or give up vectors where they are many.
 * AG_REDUCTION(+ : a, b): as AG_IVDEP, and nothing else than the variables a and b passes from one iteration
 * to the next; their terms may be added up in another order (lowering/loops/independent_loops.py). A board
 * whose compiler makes vectors of such loops defines AG_OPENMP_SIMD and has -fopenmp-simd. ag_max and ag_min
 * are NaN if any element is.
 *
 * AG_NOUNROLL: the loop stays a loop, for one of three reasons. The loop inside is unrolled and uses all
 * registers (passes/loops/row_tiles.py). Or the loop is over one or two vectors, and the compiler makes
 * vectors only of loops (lowering/loops/independent_loops.py). Or it adds up elements in another order than
 * their order in memory (lowering/loops/sums_in_order.py).
 *
 * AG_NOINLINE: a function whose loops differ in sizes is compiled once, not for each of its calls. */
#ifndef AG_LOOPS_H
#define AG_LOOPS_H

#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define AG_IVDEP
#define AG_NOUNROLL _Pragma("clang loop unroll(disable)")
#define AG_NOINLINE __attribute__((noinline))
#elif defined(__GNUC__)
#define AG_IVDEP _Pragma("GCC ivdep")
#define AG_NOUNROLL _Pragma("GCC unroll 1")
#define AG_NOINLINE __attribute__((noinline, noclone))
#else
#define AG_IVDEP
#define AG_NOUNROLL
#define AG_NOINLINE
#endif

#if defined(AG_OPENMP_SIMD) && defined(__GNUC__) && !defined(__clang__)
#define AG_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define AG_REDUCTION(...) AG_PRAGMA(omp simd reduction(__VA_ARGS__))

/* The larger and the smaller one; NaN if a or b is. Without a branch, as nothing predicts which lane wins. */
static inline float ag_larger(float a, float b) {
    const float larger = a > b ? a : b;
    return a == a ? larger : a;
}

static inline float ag_smaller(float a, float b) {
    const float smaller = a < b ? a : b;
    return a == a ? smaller : a;
}

/* clang-format off */
#pragma omp declare reduction(ag_max : float : omp_out = ag_larger(omp_out, omp_in)) \
    initializer(omp_priv = -__builtin_inff())
#pragma omp declare reduction(ag_min : float : omp_out = ag_smaller(omp_out, omp_in)) \
    initializer(omp_priv = __builtin_inff())
/* clang-format on */
#else
#define AG_REDUCTION(...) AG_IVDEP
#endif

/* Rows on hosts with wide vectors (lowering/loops/row_results.py). */

/* The sum of partial sums, as a tree; `count` is a multiple of 4. */
static inline float ag_sum(const float *parts, int32_t count) {
#if defined(__GNUC__)
    typedef float quad __attribute__((vector_size(16)));
    quad sums = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t i = 0; i < count; i += 4) {
        quad part;
        memcpy(&part, parts + i, sizeof part);
        sums += part;
    }
#else
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t i = 0; i < count; i++) {
        sums[i % 4] += parts[i];
    }
#endif
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* An integer that is larger for a larger float, 0 for -infinity and largest for NaN; ag_of_order is the
 * inverse, ag_larger_order the larger of an order and the order of x. */
static inline uint32_t ag_order(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits ^ (0u - (bits >> 31)) >> 1) - 0x807fffffu;
}

static inline float ag_of_order(uint32_t order) {
    const uint32_t key = order + 0x807fffffu, bits = key ^ (0u - (key >> 31)) >> 1;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t ag_larger_order(uint32_t order, float x) {
    const uint32_t other = ag_order(x);
    return other > order ? other : order;
}

#endif
