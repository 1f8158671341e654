/* Max pooling, a vector of channels at a time. */
#include "vec.h"

#include <string.h>

static inline void ag_pool_init(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    memcpy(y, x, (size_t)c * sizeof *y);
    memset(index, tap, (size_t)c);
}

/* index[i] = tap where lane i of `larger` is set, for the first `count` lanes */
ALWAYS_INLINE void set_index(uint8_t *index, vec_s32 larger, int32_t count, int32_t tap) {
#if defined __AVX512BW__ && defined __AVX512VL__ && defined __AVX512DQ__
    const lane_mask lanes = _mm512_movepi32_mask((__m512i)larger) & first_lanes(count);
    _mm_mask_storeu_epi8(index, lanes, _mm_set1_epi8((char)tap));
#else
#if defined __AVX2__
    if (count == LANES) {
        const __m256i wide = (__m256i)larger;
        const __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
        const __m128i old = _mm_loadl_epi64((const __m128i *)(const void *)index);
        const __m128i new = _mm_blendv_epi8(old, _mm_set1_epi8((char)tap), _mm_packs_epi16(half, half));
        _mm_storel_epi64((__m128i *)(void *)index, new);
        return;
    }
#endif
    for (int32_t i = 0; i < count; i++) {
        index[i] = larger[i] ? (uint8_t)tap : index[i];
    }
#endif
}

ALWAYS_INLINE void update(bool part, const float *x, float *y, uint8_t *index, int32_t count, int32_t tap) {
    const lane_mask mask = first_lanes(count);
    const vec next = get(part, x, mask), best = get(part, y, mask);
    /* larger, or NaN, which is not equal to itself */
    const vec_s32 larger = (next > best) | (next != next);
    put(part, y, mask, (vec)((larger & (vec_s32)next) | (~larger & (vec_s32)best)));
    set_index(index, larger, count, tap);
}

static inline void ag_pool_update(const float *x, float *y, uint8_t *index, int32_t c, int32_t tap) {
    int32_t k = 0;
    for (; k + LANES <= c; k += LANES) {
        update(false, x + k, y + k, index + k, LANES, tap);
    }
    if (k < c) {
        update(true, x + k, y + k, index + k, c - k, tap);
    }
}

static inline void ag_pool_scatter(const float *dy, const uint8_t *index, float *dx, int32_t c,
                                   const int32_t *offsets) {
    for (int32_t k = 0; k < c; k++, dx++) {
        dx[offsets[index[k]]] += dy[k];
    }
}

#define AG_POOL_CHANNELS
#include "tiles/max_pool2d.c" /* NOLINT(bugprone-suspicious-include) */
