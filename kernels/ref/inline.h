/* Functions of which each caller has a copy: what a convolution and a depthwise convolution share is written
 * once, and the number of channels of a window is a constant in the latter. */
#ifndef AG_REF_INLINE_H
#define AG_REF_INLINE_H

#if defined __GNUC__
#define AG_INLINE static inline __attribute__((always_inline))
#else
#define AG_INLINE static inline
#endif

#endif
