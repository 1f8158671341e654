/* Inlining and unrolling, for the headers of vectors. */
#ifndef AG_TILES_INLINE_H
#define AG_TILES_INLINE_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A loop over i with a constant count, unrolled. */
#if defined __clang__
#define AG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define AG_UNROLL _Pragma("GCC unroll 16")
#endif
/* NOLINTBEGIN(bugprone-macro-parentheses): i is a declaration */
#define EACH(i, count) AG_UNROLL for (int32_t i = 0; i < (count); i++)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
