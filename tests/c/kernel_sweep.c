/* One checksum over the results of the reference kernels on random operands: the same on every core. */
#include "sweep.h"

#include "ag_crc32.h"
#include "ag_kernels.h"
#include "ag_rng.h"

enum { WIDTH = 19, HEIGHT = 13, DEPTH = 17, SIZE = 20 * 20 };

static void fill_random(float *x, uint32_t key) {
    for (uint32_t i = 0; i < SIZE; i++) {
        x[i] = ag_uniformf(key, 0, i, 2.0f);
    }
}

/* Windows that extend past every edge, two groups of channels; c holds the kernels' output. */
static uint32_t windows_crc(const float *a, const float *b, float *c, uint32_t crc) {
    static const ag_conv2d_shape conv = {5, 6, 4, 3, 5, 6, 3, 2, 2, 1, 2, 1, 1, 2, 2, 120, 24, 4, 1, 6};
    static const ag_conv2d_shape deep = {5, 6, 4, 3, 5, 4, 3, 2, 2, 1, 2, 1, 1, 2, 4, 120, 24, 4, 1, 4};
    static const ag_pool2d_shape pool = {5, 6, 4, 3, 4, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 1, 120, 24, 4, 1};
    static uint8_t index[96];
    ag_conv2d_f32_ref(a, b, c, 2, NULL, &conv, NULL);
    ag_conv2d_dx_f32_ref(a, b, c + 200, 1, NULL, &conv);
    crc = ag_crc32(crc, c, SIZE * sizeof *c);
    ag_conv2d_dw_f32_ref(a, b, c, 2, &conv, -0.3f, 0.7f);
    ag_depthwise2d_f32_ref(a, b, c + 100, 1, &deep, &(ag_epilogue){NULL, a, NULL, 0.0f, 6.0f});
    ag_depthwise2d_dx_f32_ref(a, b, c + 200, 1, &deep);
    ag_depthwise2d_dw_f32_ref(a, b, c + 350, 2, &deep, -0.3f, 0.7f);
    crc = ag_crc32(crc, c, SIZE * sizeof *c);
    ag_avg_pool2d_f32_ref(a, c, 2, &pool);
    ag_avg_pool2d_dx_f32_ref(a, c + 100, 1, &pool);
    ag_max_pool2d_f32_ref(a, c + 220, index, 1, &pool);
    ag_max_pool2d_dx_f32_ref(b, index, c + 280, 1, &pool);
    crc = ag_crc32(crc, c, SIZE * sizeof *c);
    ag_max_pool2d_pick_f32_ref(b, index, c, 1, &pool);
    return ag_crc32(ag_crc32(crc, c, SIZE * sizeof *c), index, sizeof index);
}

uint32_t kernels_crc(void) {
    static float a[SIZE], b[SIZE], c[SIZE];
    static ag_gemm_f32_fn *const gemm[] = {ag_gemm_nn_f32_ref, ag_gemm_nt_f32_ref, ag_gemm_tn_f32_ref,
                                           ag_gemm_tt_f32_ref};
    uint32_t crc = 0;
    fill_random(a, 1);
    fill_random(b, 2);
    fill_random(c, 3);
    for (int i = 0; i < 4; i++) {
        gemm[i](a, 20, b, 20, c, 20, HEIGHT, WIDTH, DEPTH, -0.37f, 0.9f, NULL);
        crc = ag_crc32(crc, c, sizeof c);
    }
    ag_gemv_f32_ref(a, 20, b, c, HEIGHT, WIDTH, 0.3f, 0.0f, NULL);
    ag_gemv_t_f32_ref(a, 20, b, c + 20, HEIGHT, WIDTH, 0.3f, -1.1f, NULL);
    ag_ger_f32_ref(c + 40, 20, a, b, HEIGHT, WIDTH, -0.01f, 1.0f);
    crc = ag_crc32(crc, c, sizeof c);
    const ag_epilogue epilogue = {a, b, a + 20, -0.5f, 1.5f}, residual = {NULL, NULL, b, 0.0f, 0.0f};
    ag_gemm_nn_f32_ref(a, 20, b, 20, c, 20, HEIGHT, WIDTH, DEPTH, 0.37f, 0.0f, &epilogue);
    ag_gemv_f32_ref(a, 20, b, c + 300, HEIGHT, WIDTH, 0.3f, 0.0f, &residual);
    crc = ag_crc32(crc, c, sizeof c);
    return windows_crc(a, b, c, crc);
}
