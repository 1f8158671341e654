/* Products of 8-bit integers with NEON: 16 elements of a window times 16 of each of four rows. The products
 * of elements 8 to 15 use the complements of the window's elements, -1 - x, and are subtracted from the
 * products of elements 0 to 7, so that 16 bits hold them for any values. A sum is then too small by the sum
 * of the weights of elements 8 to 15. The sum of a window of padding is too small by the same number, and is
 * subtracted. */
#include "tiles/requantized.h"

#define AG_WINDOWS 1
#define ag_copy memcpy
enum { AG_ROWS = 32 };

#if defined __aarch64__ /* gcc 12 makes neither of these from the functions of AArch32 */
#define MINUS_HIGH(sums, x, w) vmlsl_high_s8(sums, x, w)
#define TOTALS(a, b) vpaddq_s32(a, b)
#else
#define MINUS_HIGH(sums, x, w) vmlsl_s8(sums, vget_high_s8(x), vget_high_s8(w))
#define TOTALS(a, b)                                                                                         \
    vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)), vpadd_s32(vget_low_s32(b), vget_high_s32(b)))
#endif

ALWAYS_INLINE int32x4_t plus_products(int32x4_t sums, int8x16_t x, int8x16_t complement, int8x16_t w) {
    return vpadalq_s16(sums, MINUS_HIGH(vmull_s8(vget_low_s8(x), vget_low_s8(w)), complement, w));
}

/* sums = bias + the products; k >= 8. Of the elements after the last multiple of 16, the first 8, if there
 * are so many, are used as they are; the complements of the others are at the end of 8, whose beginning is 0.
 */
static void ag_dots(int32_t *sums, const int32_t *bias, const int8_t *window, const int8_t *w, int32_t k,
                    int32_t rows) {
    static const int8_t used[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    const int32_t rest = k % 16, whole = k - rest, before = rest < 8 ? k - 8 : whole;
    const int8x8_t tail = vand_s8(vmvn_s8(vld1_s8(window + k - 8)), vld1_s8(used + rest % 8));
    const int8x16_t last = vcombine_s8(rest < 8 ? vdup_n_s8(0) : vld1_s8(window + before), tail);
    for (const int32_t *const end = sums + rows; sums < end; sums += 4, bias += 4, w += 4 * k) {
        int32x4_t s[4];
        EACH (i, 4) {
            s[i] = vdupq_n_s32(0);
        }
        for (int32_t l = 0; l < whole; l += 16) {
            const int8x16_t x = vld1q_s8(window + l);
            const int8x16_t complement = vmvnq_s8(x);
            EACH (i, 4) {
                s[i] = plus_products(s[i], x, complement, vld1q_s8(w + i * k + l));
            }
        }
        if (rest > 0) {
            EACH (i, 4) {
                const int8_t *row = w + i * k;
                s[i] =
                    plus_products(s[i], last, last, vcombine_s8(vld1_s8(row + before), vld1_s8(row + k - 8)));
            }
        }
        vst1q_s32(sums, vaddq_s32(vld1q_s32(bias), TOTALS(TOTALS(s[0], s[1]), TOTALS(s[2], s[3]))));
    }
}

#include "tiles/products_s8.c"
