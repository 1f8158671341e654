/* Symbols of the backend for which a file of this folder is compiled: AG_BACKEND, which the build defines for
 * backends whose table has `tiles`. For "neon", the symbol of conv2d_f32 is ag_conv2d_f32_neon. */
#ifndef AG_TILES_SYMBOLS_H
#define AG_TILES_SYMBOLS_H

#ifndef AG_BACKEND
#error "define AG_BACKEND as the folder of the backend, such as -DAG_BACKEND=mve for kernels/mve"
#endif

#define AG_JOIN_(a, b) a##_##b
#define AG_JOIN(a, b) AG_JOIN_(a, b)

#define AG_SYMBOL(kernel) AG_JOIN(ag_##kernel, AG_BACKEND)
#define AG_MICROKERNEL(name) AG_JOIN(ag_microkernel_##name, AG_BACKEND)
#define AG_DEPTHWISE_MICROKERNEL AG_JOIN(ag_depthwise_microkernel, AG_BACKEND)

/* Inlining and unrolling, for the headers of vectors. */
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
