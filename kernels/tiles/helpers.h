/* Shared by the files of this folder: distances in bytes, an attribute, and the backend's schedule. */
#ifndef AG_TILES_HELPERS_H
#define AG_TILES_HELPERS_H

#include "tiles/schedules.h"

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

/* p, moved by so many bytes. */
static inline const float *ag_after(const float *p, ptrdiff_t bytes) {
    const void *at = (const char *)p + bytes;
    return (const float *)at;
}

static inline float *ag_element_after(float *p, ptrdiff_t bytes) {
    void *at = (char *)p + bytes;
    return (float *)at;
}

static inline int32_t ag_min(int32_t a, int32_t b) {
    return a < b ? a : b;
}

#endif
