/* Shared by the headers of this folder: distances in bytes, and an attribute. */
#ifndef AG_TILES_HELPERS_H
#define AG_TILES_HELPERS_H

#include <stddef.h>
#include <stdint.h>

/* For rarely called functions: keeps their stack frame out of the caller's. */
#if defined __GNUC__
#define AG_NOINLINE __attribute__((noinline))
#else
#define AG_NOINLINE
#endif

static inline int32_t ag_bytes(ptrdiff_t floats) {
    return (int32_t)(floats * (ptrdiff_t)sizeof(float));
}

#endif
