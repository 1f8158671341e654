/* Packs rows of B into a panel of columns, for the micro-kernels that read B contiguous along n. */
#ifndef AG_HOST_PACK_B_H
#define AG_HOST_PACK_B_H

#include "vec.h"

/* dst[p][j] = element p of row j, for `count` rows of k elements, `ldb` apart; a row of dst has AG_TILE_N
 * elements, those from `count` on, up to a whole vector, are 0. */
static inline void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t count) {
    int32_t j = 0;
    for (; j + 4 <= count; j += 4, b += 4 * ldb, dst += 4) {
        float *to = dst;
        int32_t p = 0;
        for (; p + 4 <= k; p += 4, to += (ptrdiff_t)4 * AG_TILE_N) { /* 4 x 4 elements, transposed */
            const quad r0 = *(const unaligned_quad *)(b + p), r1 = *(const unaligned_quad *)(b + ldb + p);
            const quad r2 = *(const unaligned_quad *)(b + 2 * ldb + p),
                       r3 = *(const unaligned_quad *)(b + 3 * ldb + p);
            const quad a0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
                       a1 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),
                       a2 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7),
                       a3 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
            *(unaligned_quad *)to = __builtin_shufflevector(a0, a1, 0, 1, 4, 5);
            *(unaligned_quad *)(to + AG_TILE_N) = __builtin_shufflevector(a0, a1, 2, 3, 6, 7);
            *(unaligned_quad *)(to + (ptrdiff_t)2 * AG_TILE_N) = __builtin_shufflevector(a2, a3, 0, 1, 4, 5);
            *(unaligned_quad *)(to + (ptrdiff_t)3 * AG_TILE_N) = __builtin_shufflevector(a2, a3, 2, 3, 6, 7);
        }
        for (; p < k; p++, to += AG_TILE_N) {
            to[0] = b[p], to[1] = b[ldb + p], to[2] = b[2 * ldb + p], to[3] = b[3 * ldb + p];
        }
    }
    for (; j % LANES != 0 || j < count; j++, b += ldb, dst++) {
        for (int32_t p = 0; p < k; p++) {
            dst[(ptrdiff_t)p * AG_TILE_N] = j < count ? b[p] : 0.0f;
        }
    }
}

#endif
