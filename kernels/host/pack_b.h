/* Packs rows of B into a panel of columns, for the micro-kernels that read B contiguous along n. */
#ifndef AG_HOST_PACK_B_H
#define AG_HOST_PACK_B_H

/* to[p][q] = element p of row q: four rows of k elements. A row with a step of 0 repeats its first four. */
ALWAYS_INLINE void pack_four(float *to, const float *const *row, const ptrdiff_t *step, int32_t k) {
    const float *r[4] = {row[0], row[1], row[2], row[3]};
    int32_t p = 0;
    for (; p + 4 <= k; p += 4, to += (ptrdiff_t)4 * AG_TILE_N) { /* 4 x 4 elements, transposed */
        quad v[4];
        EACH (q, 4) {
            v[q] = *(const unaligned_quad *)r[q];
            r[q] += 4 * step[q];
        }
        const quad a0 = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
                   a1 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
                   a2 = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
                   a3 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
        *(unaligned_quad *)to = __builtin_shufflevector(a0, a1, 0, 1, 4, 5);
        *(unaligned_quad *)(to + AG_TILE_N) = __builtin_shufflevector(a0, a1, 2, 3, 6, 7);
        *(unaligned_quad *)(to + (ptrdiff_t)2 * AG_TILE_N) = __builtin_shufflevector(a2, a3, 0, 1, 4, 5);
        *(unaligned_quad *)(to + (ptrdiff_t)3 * AG_TILE_N) = __builtin_shufflevector(a2, a3, 2, 3, 6, 7);
    }
    for (; p < k; p++, to += AG_TILE_N) {
        EACH (q, 4) {
            to[q] = *r[q];
            r[q] += step[q];
        }
    }
}

/* dst[p][j] = element p of row j, for `count` rows of k elements, `ldb` apart; a row of dst has AG_TILE_N
 * elements, those from `count` on, up to a whole vector, are 0. */
static inline void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t count) {
    static const float none[4];
    static const ptrdiff_t ones[4] = {1, 1, 1, 1};
    int32_t j = 0;
    for (; j + 4 <= count; j += 4, b += 4 * ldb, dst += 4) {
        const float *const row[4] = {b, b + ldb, b + 2 * ldb, b + 3 * ldb};
        pack_four(dst, row, ones, k);
    }
    for (; j < (count + LANES - 1) / LANES * LANES; j += 4, b += 4 * ldb, dst += 4) {
        const float *row[4];
        ptrdiff_t step[4];
        EACH (q, 4) {
            step[q] = j + q < count;
            row[q] = j + q < count ? b + q * ldb : none;
        }
        pack_four(dst, row, step, k);
    }
}

#endif
