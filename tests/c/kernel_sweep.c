/* The reference kernels on drawn operands, as one checksum: the same on every core. */
#include "sweep.h"

#include "ag_crc32.h"
#include "ag_kernels.h"
#include "ag_rng.h"

enum { WIDTH = 19, HEIGHT = 13, DEPTH = 17, SIZE = 20 * 20 };

static void draw(float *x, uint32_t key) {
    for (uint32_t i = 0; i < SIZE; i++) {
        x[i] = ag_uniformf(key, 0, i, 2.0f);
    }
}

uint32_t kernels_crc(void) {
    static float a[SIZE], b[SIZE], c[SIZE];
    static ag_gemm_f32_fn *const gemm[] = {ag_gemm_nn_f32_ref, ag_gemm_nt_f32_ref, ag_gemm_tn_f32_ref,
                                           ag_gemm_tt_f32_ref};
    uint32_t crc = 0;
    draw(a, 1);
    draw(b, 2);
    draw(c, 3);
    for (int i = 0; i < 4; i++) {
        gemm[i](a, 20, b, 20, c, 20, HEIGHT, WIDTH, DEPTH, -0.37f, 0.9f);
        crc = ag_crc32(crc, c, sizeof c);
    }
    ag_gemv_f32_ref(a, 20, b, c, HEIGHT, WIDTH, 0.3f, 0.0f);
    ag_gemv_t_f32_ref(a, 20, b, c + 20, HEIGHT, WIDTH, 0.3f, -1.1f);
    ag_ger_f32_ref(c + 40, 20, a, b, HEIGHT, WIDTH, -0.01f, 1.0f);
    return ag_crc32(crc, c, sizeof c);
}
