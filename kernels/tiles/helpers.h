/* Shared by the files of this folder: distances in bytes, an attribute, and options of the backend. */
#ifndef AG_TILES_HELPERS_H
#define AG_TILES_HELPERS_H

#include "vec.h"

#include <stddef.h>
#include <stdint.h>

/* vec.h defines it as 1 where the micro-kernels take the last fields of ag_tile and of ag_depthwise_tile. */
#ifndef AG_GENERAL_TILES
#define AG_GENERAL_TILES 0
#endif

/* vec.h defines it as 1 where a call of a micro-kernel computes several tiles of the same rows (ag_tile_run).
 */
#ifndef AG_TILE_RUNS
#define AG_TILE_RUNS 0
#endif

/* vec.h defines it as 1 where gemv and gemv_t compute single pixels in fewer instructions than a tile. */
#ifndef AG_SINGLE_PIXELS
#define AG_SINGLE_PIXELS 0
#endif

/* vec.h defines it as 1 where a micro-kernel (np) multiplies any number of rows of A by a panel of
 * AG_PANEL_COLUMNS columns of B, which is packed in scratch memory. */
#ifndef AG_SCRATCH_PANEL
#define AG_SCRATCH_PANEL 0
#endif

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
