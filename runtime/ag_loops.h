/* What generated C says of a loop, before it.
 *
 * AG_IVDEP: no iteration reads or writes what another one writes (codegen/independent_loops.py). A compiler
 * need not ask at run time whether the arrays overlap, or give up vectors where they are many.
 * AG_NOUNROLL: the loop inside is unrolled, and keeps the registers busy (lowering/row_tiles.py). To unroll
 * this one too would only make the code larger. */
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

#endif
