/* AG_RELU_BLOCKS and AG_RELU_BLOCK, of blocks of four and of eight sums that are positive, negative,
 * zeros, infinite, at the limit, and NaN of either sign; exits with the number of elements that differ from
 * `v <= 0 ? 0 : v` and from that which is `high` where it is more, or with 64 where the mode of the FPU is
 * not the value before. */
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
    for (int i = 0; i < 16; i += 4) {
        AG_RELU_BLOCK(k, 4, read(x_block, &x[i]), read(y_block, &y[i]), replace_relu(sum, &found[i]),
                      write_limited(first, &limited[0][i], highs[0]),
                      write_limited(second, &limited[1][i], highs[1]),
                      write_limited(third, &limited[2][i], highs[2])) {
            sum[k] = first[k] = second[k] = third[k] = x_block[k] - y_block[k];
        }
    }
    AG_RELU_BLOCKS(i, 16, k, 8, read(x_block, x), read(y_block, y), replace_relu(sum, again)) {
        sum[k] = x_block[k] - y_block[k];
    }
    for (int h = 0; h < HIGHS; h++) {
        AG_RELU_BLOCK_ROWS(i, 2, k, 8, read(x_block, x, 8), read(y_block, y, 8),
                           replace_limited(sum, limited_again[h], 8, highs[h])) {
            sum[k] = x_block[k] - y_block[k];
        }
    }
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
