/* Before a loop no iteration of which reads or writes what another one writes (codegen/independent_loops.py):
 * a compiler need not ask at run time whether its arrays overlap, or give up vectors where they are many. */
#ifndef AG_IVDEP_H
#define AG_IVDEP_H

#if defined(__GNUC__) && !defined(__clang__)
#define AG_IVDEP _Pragma("GCC ivdep")
#else
#define AG_IVDEP
#endif

#endif
