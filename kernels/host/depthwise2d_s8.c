/* Depthwise convolution of 8-bit integers with AVX2, eight channels at a time. */
#include "requantized.h"
#include "tiles/taps_s8.h"

typedef __m256i ag_sums_s8;

typedef struct ag_channels_s8 {
    ag_sums_s8 bias;
    const int32_t *multiplier;
    const int8_t *shift;
} ag_channels_s8;

ALWAYS_INLINE ag_channels_s8 ag_channels_of(const int32_t *bias, const int32_t *multiplier,
                                            const int8_t *shift) {
    const ag_channels_s8 c = {_mm256_loadu_si256((const __m256i *)(const void *)bias), multiplier, shift};
    return c;
}

ALWAYS_INLINE __m256i widened(const int8_t *p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

ALWAYS_INLINE void ag_taps(ag_sums_s8 *sums, const int8_t *x, const ag_tap_s8 *taps, int32_t count,
                           int32_t zero) {
    const __m256i zeros = _mm256_set1_epi32(zero);
    for (const ag_tap_s8 *const end = taps + count; taps < end; taps++) {
        const __m256i v = _mm256_sub_epi32(widened(x + taps->offset), zeros);
        *sums = _mm256_add_epi32(*sums, _mm256_mullo_epi32(v, widened(taps->w)));
    }
}

ALWAYS_INLINE void ag_put_channels(int8_t *y, const ag_sums_s8 *sums, const ag_channels_s8 *c,
                                   const ag_output_s8 *o) {
    put_elements(y, (eight)*sums, c->multiplier, c->shift, AG_CHANNELS, o);
}

#include "tiles/depthwise2d_s8.c" /* NOLINT(bugprone-suspicious-include) */
