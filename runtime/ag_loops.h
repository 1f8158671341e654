/* What generated C says of a loop, before it.
 *
 * AG_IVDEP: no iteration reads or writes what another one writes (codegen/independent_loops.py). A compiler
 * need not check at run time whether the arrays overlap, or give up vectors where they are many.
 * AG_REDUCTION(+ : a, b): as AG_IVDEP, and nothing else than the variables a and b passes from one iteration
 * to the next; their terms may be added up in another order (codegen/reduction_loops.py). A board whose
 * compiler makes vectors of such loops defines AG_OPENMP_SIMD and has -fopenmp-simd. ag_max and ag_min are
 * NaN if any element is. AG_NOUNROLL: the loop inside is unrolled, and keeps the registers busy
 * (lowering/row_tiles.py). To unroll this one too would only make the code larger. */
#ifndef AG_LOOPS_H
#define AG_LOOPS_H

#if defined(__clang__)
#define AG_IVDEP
#define AG_NOUNROLL _Pragma("clang loop unroll(disable)")
#elif defined(__GNUC__)
#define AG_IVDEP _Pragma("GCC ivdep")
#define AG_NOUNROLL _Pragma("GCC unroll 1")
#else
#define AG_IVDEP
#define AG_NOUNROLL
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

#endif
