/* Products of 8-bit integers with AVX2: 16 elements of a window times 16 elements of each of four rows. The
 * last 16 elements overlap the ones before, where x is 0. */
#include "requantized.h"

#include <stddef.h>

#define AG_WINDOWS 1
#define ag_copy memcpy
enum { AG_ROWS = 32 };

ALWAYS_INLINE __m256i words_at(const int8_t *p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* sums = bias + the products; k >= 16. */
static void ag_dots(int32_t *sums, const int32_t *bias, const int8_t *window, const int8_t *w, int32_t k,
                    int32_t rows) {
    static const int8_t used[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const int32_t rest = k % 16, tail = k - 16;
    const ptrdiff_t row = k;
    const __m256i last = words_at(window + tail) & words_at(used + rest);
    for (const int32_t *const end = sums + rows; sums < end; sums += 4, bias += 4, w += 4 * row) {
        __m256i s[4] = {{0}, {0}, {0}, {0}};
        for (int32_t l = 0; l <= tail; l += 16) {
            const __m256i x = words_at(window + l);
            EACH (i, 4) {
                s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(x, words_at(w + i * row + l)));
            }
        }
        if (rest > 0) {
            EACH (i, 4) {
                s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(last, words_at(w + i * row + tail)));
            }
        }
        const __m256i halves =
            _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
        const __m128i total =
            _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
        _mm_storeu_si128((__m128i *)(void *)sums,
                         _mm_add_epi32(_mm_loadu_si128((const __m128i *)(const void *)bias), total));
    }
}

/* `count` is a multiple of 4. */
static void ag_put(int8_t *y, const int32_t *sums, const int32_t *multiplier, const int8_t *shift,
                   int32_t count, const ag_output_s8 *o) {
    for (int32_t i = 0; i < count; i += 8) {
        put_elements(y + i, elements(sums + i, count - i), multiplier + i, shift + i, count - i, o);
    }
}

#include "tiles/products_s8.c" /* NOLINT(bugprone-suspicious-include) */
