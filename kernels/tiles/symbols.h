/* Symbols of the backend for which a file of this folder is compiled: AG_BACKEND, which the build defines for
 * backends whose table has `tiles`. For "neon", the symbol of conv2d_f32 is ag_conv2d_f32_neon. */
#ifndef AG_TILES_SYMBOLS_H
#define AG_TILES_SYMBOLS_H

#define AG_JOIN_(a, b) a##_##b
#define AG_JOIN(a, b) AG_JOIN_(a, b)

#define AG_SYMBOL(kernel) AG_JOIN(ag_##kernel, AG_BACKEND)
#define AG_MICROKERNEL(name) AG_JOIN(ag_microkernel_##name, AG_BACKEND)
#define AG_DEPTHWISE_MICROKERNEL AG_JOIN(ag_depthwise_microkernel, AG_BACKEND)

#endif
