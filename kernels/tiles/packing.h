/* Panels of AG_PANEL_COLUMNS columns of B, which micro-kernels read contiguous along n, element by element.
 */
#ifndef AG_TILES_PACKING_H
#define AG_TILES_PACKING_H

/* dst[p][j] = element p of row j, for `count` rows of k elements, `ldb` apart; columns from `count` on are 0.
 */
static inline void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k, int32_t count) {
    for (int32_t p = 0; p < k; p++) {
        for (int32_t j = 0; j < AG_PANEL_COLUMNS; j++) {
            *dst++ = j < count ? b[j * ldb + p] : 0.0f;
        }
    }
}

#endif
