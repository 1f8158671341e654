/* AG_STORE_POSITIVE and AG_STORE_LIMITED, of blocks of four and of eight sums that are positive, negative,
 * zeros, infinite, at the limit, and NaN of either sign; exits with the number of elements that differ from
 * `v <= 0 ? 0 : v` and from that which is `high` where it is more, or with 64 where the mode of the FPU is
 * not what it was. */
#include "ag_blocks.h"

#include <math.h>
#include <string.h>

static const float a[16] = {1.0f,    -1.0f, 0.0f,   -0.0f, INFINITY, -INFINITY, INFINITY, 1e-45f,
                            -1e-45f, 3e38f, -3e38f, 0.5f,  0.0f,     0.0f,      7.0f,     6.0f};
static const float b[16] = {1.0f, 0.5f,  0.0f,   -0.0f, 1.0f, 1.0f, -INFINITY, 0.0f,
                            0.0f, 3e38f, -3e38f, -0.5f, 0.0f, 0.0f, 0.0f,      0.0f};

enum { HIGHS = 3 };
static const float highs[HIGHS] = {6.0f, 1e-45f, 3.402823466e+38f};

static float x[16], y[16], found[16], again[16], limited[HIGHS][16], limited_again[HIGHS][16];

static uint32_t bits(float v) {
    uint32_t word;
    memcpy(&word, &v, sizeof word);
    return word;
}

static __attribute__((noinline)) void sums(void) {
    const uint32_t fpu_modes = ag_begin_default_nan();
    for (int i = 0; i < 16; i += 4) {
        float x_block[4], y_block[4], sum[4];
        AG_LOAD_BLOCK(0, x_block, &x[i]);
        AG_LOAD_BLOCK(1, y_block, &y[i]);
        for (int k = 0; k < 4; k++) {
            sum[k] = x_block[k] - y_block[k];
        }
        AG_STORE_POSITIVE(2, &found[i], sum);
        AG_STORE_LIMITED(2, &limited[0][i], sum, highs[0]);
        AG_STORE_LIMITED(1, &limited[1][i], sum, highs[1]);
        AG_STORE_LIMITED(0, &limited[2][i], sum, highs[2]);
    }
    const float *x_next = x, *y_next = y;
    float *again_next = again, *limited_next = limited_again[0], *limited_next_2 = limited_again[1];
    float *limited_next_3 = limited_again[2];
    for (int i = 0; i < 16; i += 8) {
        float x_block[8], y_block[8], sum[8];
        AG_LOAD_NEXT(4, x_block, x_next);
        AG_LOAD_NEXT(2, y_block, y_next);
        for (int k = 0; k < 8; k++) {
            sum[k] = x_block[k] - y_block[k];
        }
        AG_STORE_NEXT_POSITIVE(4, again_next, sum);
        AG_STORE_NEXT_LIMITED(3, limited_next, sum, highs[0]);
        AG_STORE_NEXT_LIMITED(5, limited_next_2, sum, highs[1]);
        AG_STORE_NEXT_LIMITED(0, limited_next_3, sum, highs[2]);
    }
    ag_end_default_nan(fpu_modes);
}

int main(void) {
    const uint32_t negative_nan = 0xffc00000u;
    int wrong = 0;
    for (int i = 0; i < 16; i++) {
        x[i] = a[i];
        y[i] = -b[i];
    }
    memcpy(&x[12], &negative_nan, sizeof negative_nan);
    memcpy(&y[13], &negative_nan, sizeof negative_nan);
    sums();
    for (int i = 0; i < 16; i++) {
        const volatile float sum = x[i] - y[i];
        const float wanted = sum <= 0.0f ? 0.0f : sum;
        wrong += bits(again[i]) != bits(found[i]);
        wrong += wanted != wanted ? found[i] == found[i] : bits(found[i]) != bits(wanted);
        for (int k = 0; k < HIGHS; k++) {
            const float most = wanted >= highs[k] ? highs[k] : wanted, is = limited[k][i];
            wrong += bits(is) != bits(limited_again[k][i]);
            wrong += most != most ? is == is : bits(is) != bits(most);
        }
    }
    memcpy(found, &negative_nan, sizeof negative_nan);
    const volatile float nan = found[0];
    const float kept = nan + 1.0f; /* in the mode of the program */
    return bits(kept) >> 31 ? wrong : 64;
}
