/* What blocks and rows share. */
#ifndef AG_TILES_HELPERS_H
#define AG_TILES_HELPERS_H

#include <stddef.h>
#include <stdint.h>

/* Keeps what is rarely called out of its caller's frame. */
#if defined __GNUC__
#define AG_NOINLINE __attribute__((noinline))
#else
#define AG_NOINLINE
#endif

static inline int32_t ag_bytes(ptrdiff_t floats) {
    return (int32_t)(floats * (ptrdiff_t)sizeof(float));
}

#endif
