/* Packs rows of B into a panel of columns, for the micro-kernels that read B contiguous along n. */
#ifndef AG_NEON_PACK_B_H
#define AG_NEON_PACK_B_H

/* dst[p][j] = element p of row j, for `count` rows, AG_TILE_N, of k elements, `ldb` apart. */
static inline void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t count) {
    (void)count;
    for (int32_t j = 0; j < AG_TILE_N; j += LANES, b += LANES * ldb, dst += LANES) {
        int32_t p = 0;
        for (; p + LANES <= k; p += LANES) {
            vec v[LANES];
            EACH (i, LANES) {
                v[i] = load(b + i * ldb + p);
            }
            transpose(v);
            EACH (i, LANES) {
                store(dst + (ptrdiff_t)(p + i) * AG_TILE_N, v[i]);
            }
        }
        for (; p < k; p++) {
            const float *rows[LANES] = {b + p, b + ldb + p, b + 2 * ldb + p, b + 3 * ldb + p};
            store(dst + (ptrdiff_t)p * AG_TILE_N, next_gathered(rows));
        }
    }
}

#endif
