/* Every kernel of the contract against figures in float64. Written by tests/board_figures.py. */
#include "ag_kernels.h"
#include "figures.h"

static void gemm_nn_f32(void) {
    static float a[12];
    static float b[20];
    static float c[15];
    static const float want_c[] = {0.814763188f,  0.00398004614f, 0.828996658f, 0.725309849f,  0.833700538f,
                                   1.03071594f,   0.682833433f,   0.201198563f, 0.909044564f,  0.208664909f,
                                   -0.961427808f, -0.341602474f,  1.04095352f,  -0.228853539f, -0.228235185f};
    figures_draw_f32(a, 12, 0u, 0u, -1.0f, 2.0f);
    figures_draw_f32(b, 20, 0u, 1u, -1.0f, 2.0f);
    figures_draw_f32(c, 15, 0u, 2u, -1.0f, 2.0f);
    ag_gemm_nn_f32_ref(a, 4, b, 5, c, 5, 3, 5, 4, 0.5f, 2.0f);
    figures_compare("gemm_nn_f32", c, want_c, 15, 1.04095343e-05f);
}

static void gemm_nt_f32(void) {
    static float a[12];
    static float b[20];
    static float c[15];
    static const float want_c[] = {0.410243213f, 0.777213097f, 0.920481443f,  -1.97697711f,  1.36475778f,
                                   2.26687741f,  -0.92934674f, 0.291773915f,  0.0233928449f, 0.61314857f,
                                   -1.88015962f, 0.769105792f, -0.635929883f, 1.17137074f,   0.931673944f};
    figures_draw_f32(a, 12, 1u, 0u, -1.0f, 2.0f);
    figures_draw_f32(b, 20, 1u, 1u, -1.0f, 2.0f);
    figures_draw_f32(c, 15, 1u, 2u, -1.0f, 2.0f);
    ag_gemm_nt_f32_ref(a, 4, b, 4, c, 5, 3, 5, 4, 0.5f, 2.0f);
    figures_compare("gemm_nt_f32", c, want_c, 15, 2.26687753e-05f);
}

static void gemm_tn_f32(void) {
    static float a[12];
    static float b[20];
    static float c[15];
    static const float want_c[] = {1.37533045f,  -0.255545884f, 1.63619256f,   -0.0832445025f, 1.87385678f,
                                   2.36281824f,  1.1490308f,    -0.753846705f, -0.625015676f,  0.582016349f,
                                   0.239101231f, 1.53738558f,   -0.25959143f,  0.145074114f,   0.466556072f};
    figures_draw_f32(a, 12, 2u, 0u, -1.0f, 2.0f);
    figures_draw_f32(b, 20, 2u, 1u, -1.0f, 2.0f);
    figures_draw_f32(c, 15, 2u, 2u, -1.0f, 2.0f);
    ag_gemm_tn_f32_ref(a, 3, b, 5, c, 5, 3, 5, 4, 0.5f, 2.0f);
    figures_compare("gemm_tn_f32", c, want_c, 15, 2.3628183e-05f);
}

static void gemm_tt_f32(void) {
    static float a[12];
    static float b[20];
    static float c[15];
    static const float want_c[] = {-1.08263826f, 1.58548629f,   -0.129380614f, 0.229162931f,  -1.11797118f,
                                   1.22808659f,  -0.281151354f, 1.28352404f,   1.55374932f,   1.68015134f,
                                   -1.50187457f, -0.614322007f, 0.607371449f,  0.0571984462f, 1.52653813f};
    figures_draw_f32(a, 12, 3u, 0u, -1.0f, 2.0f);
    figures_draw_f32(b, 20, 3u, 1u, -1.0f, 2.0f);
    figures_draw_f32(c, 15, 3u, 2u, -1.0f, 2.0f);
    ag_gemm_tt_f32_ref(a, 3, b, 4, c, 5, 3, 5, 4, 0.5f, 2.0f);
    figures_compare("gemm_tt_f32", c, want_c, 15, 1.6801514e-05f);
}

static void gemv_f32(void) {
    static float a[15];
    static float x[5];
    static float y[3];
    static const float want_y[] = {1.74453807f, -0.940710127f, 0.483205378f};
    figures_draw_f32(a, 15, 4u, 0u, -1.0f, 2.0f);
    figures_draw_f32(x, 5, 4u, 1u, -1.0f, 2.0f);
    figures_draw_f32(y, 3, 4u, 2u, -1.0f, 2.0f);
    ag_gemv_f32_ref(a, 5, x, y, 3, 5, 0.5f, 2.0f);
    figures_compare("gemv_f32", y, want_y, 3, 1.74453799e-05f);
}

static void gemv_t_f32(void) {
    static float a[15];
    static float x[3];
    static float y[5];
    static const float want_y[] = {-1.97057235f, -0.209209427f, -1.08500254f, -1.28912258f, -0.984883308f};
    figures_draw_f32(a, 15, 5u, 0u, -1.0f, 2.0f);
    figures_draw_f32(x, 3, 5u, 1u, -1.0f, 2.0f);
    figures_draw_f32(y, 5, 5u, 2u, -1.0f, 2.0f);
    ag_gemv_t_f32_ref(a, 5, x, y, 3, 5, 0.5f, 2.0f);
    figures_compare("gemv_t_f32", y, want_y, 5, 1.97057234e-05f);
}

static void ger_f32(void) {
    static float a[15];
    static float x[3];
    static float y[5];
    static const float want_a[] = {-1.00734794f,  1.07191682f,  -0.683884859f, -0.706151962f, 0.460047394f,
                                   -0.697253048f, 2.14451981f,  1.1958158f,    -1.12452245f,  1.52962446f,
                                   -0.1325185f,   -2.09269953f, 0.206860498f,  -0.489238054f, 0.63553679f};
    figures_draw_f32(a, 15, 6u, 0u, -1.0f, 2.0f);
    figures_draw_f32(x, 3, 6u, 1u, -1.0f, 2.0f);
    figures_draw_f32(y, 5, 6u, 2u, -1.0f, 2.0f);
    ag_ger_f32_ref(a, 5, x, y, 3, 5, 0.5f, 2.0f);
    figures_compare("ger_f32", a, want_a, 15, 2.14451975e-05f);
}

static void avg_pool2d_f32(void) {
    static const ag_pool2d_shape shape = {4, 6, 3, 2, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 1, 72, 18, 3, 1};
    static float x[144];
    static float y[36];
    static const float want_y[] = {
        -0.0634906292f, -0.174589187f, 0.316966444f,   0.320273668f,  0.17309615f,   0.0567170084f,
        -0.0109455585f, 0.182006389f,  -0.0521497428f, 0.253178596f,  -0.183466375f, 0.0281458795f,
        -0.21083343f,   -0.316355854f, -0.217991382f,  0.094035238f,  0.0720899701f, 0.468363106f,
        -0.0512896776f, 0.194101423f,  -0.152133316f,  0.0719873011f, 0.39345488f,   -0.229021221f,
        -0.149738193f,  -0.281717658f, -0.237677425f,  0.0364557505f, 0.19201085f,   0.517945588f,
        -0.0214864612f, 0.447370261f,  -0.714176416f,  0.282210499f,  0.448057979f,  0.217304021f};
    figures_draw_f32(x, 144, 2005u, 0u, -1.0f, 2.0f);
    figures_spoil(y, sizeof y);
    ag_avg_pool2d_f32_ref(x, y, 2, &shape);
    figures_compare("avg_pool2d_f32", y, want_y, 36, 7.14176394e-06f);
}

static void avg_pool2d_dx_f32(void) {
    static const ag_pool2d_shape shape = {4, 6, 3, 2, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 0, 1, 72, 18, 3, 1};
    static float dy[36];
    static float dx[144];
    static const float want_dx[] = {
        0.0357606709f,   0.199055642f,   0.137272656f,   0.0357606709f,   0.199055642f,   0.137272656f,
        0.22623682f,     0.186047763f,   0.13225314f,    0.22623682f,     0.186047763f,   0.13225314f,
        0.240608871f,    -0.132015824f,  -0.0909397602f, 0.240608871f,    -0.132015824f,  -0.0909397602f,
        0.0357606709f,   0.199055642f,   0.137272656f,   0.0357606709f,   0.199055642f,   0.137272656f,
        0.22623682f,     0.186047763f,   0.13225314f,    0.22623682f,     0.186047763f,   0.13225314f,
        0.240608871f,    -0.132015824f,  -0.0909397602f, 0.240608871f,    -0.132015824f,  -0.0909397602f,
        -0.0806461573f,  0.103062332f,   -0.135472745f,  -0.0806461573f,  0.103062332f,   -0.135472745f,
        -0.146376938f,   -0.22504741f,   0.0357113481f,  -0.146376938f,   -0.22504741f,   0.0357113481f,
        -0.0964530706f,  0.0901220441f,  -0.128628105f,  -0.0964530706f,  0.0901220441f,  -0.128628105f,
        -0.0806461573f,  0.103062332f,   -0.135472745f,  -0.0806461573f,  0.103062332f,   -0.135472745f,
        -0.146376938f,   -0.22504741f,   0.0357113481f,  -0.146376938f,   -0.22504741f,   0.0357113481f,
        -0.0964530706f,  0.0901220441f,  -0.128628105f,  -0.0964530706f,  0.0901220441f,  -0.128628105f,
        -0.163281769f,   0.0705060363f,  0.15974918f,    -0.163281769f,   0.0705060363f,  0.15974918f,
        -0.0728296936f,  -0.0870946646f, -0.0475428998f, -0.0728296936f,  -0.0870946646f, -0.0475428998f,
        0.218474001f,    -0.147172153f,  0.187145442f,   0.218474001f,    -0.147172153f,  0.187145442f,
        -0.163281769f,   0.0705060363f,  0.15974918f,    -0.163281769f,   0.0705060363f,  0.15974918f,
        -0.0728296936f,  -0.0870946646f, -0.0475428998f, -0.0728296936f,  -0.0870946646f, -0.0475428998f,
        0.218474001f,    -0.147172153f,  0.187145442f,   0.218474001f,    -0.147172153f,  0.187145442f,
        -0.129701316f,   -0.130233109f,  0.246383637f,   -0.129701316f,   -0.130233109f,  0.246383637f,
        0.0928165913f,   0.176438212f,   0.205997229f,   0.0928165913f,   0.176438212f,   0.205997229f,
        -0.00742077827f, 0.210328221f,   -0.195647389f,  -0.00742077827f, 0.210328221f,   -0.195647389f,
        -0.129701316f,   -0.130233109f,  0.246383637f,   -0.129701316f,   -0.130233109f,  0.246383637f,
        0.0928165913f,   0.176438212f,   0.205997229f,   0.0928165913f,   0.176438212f,   0.205997229f,
        -0.00742077827f, 0.210328221f,   -0.195647389f,  -0.00742077827f, 0.210328221f,   -0.195647389f};
    figures_draw_f32(dy, 36, 2320u, 0u, -1.0f, 2.0f);
    figures_spoil(dx, sizeof dx);
    ag_avg_pool2d_dx_f32_ref(dy, dx, 2, &shape);
    figures_compare("avg_pool2d_dx_f32", dx, want_dx, 144, 2.46383638e-06f);
}

#define KERNEL_FIGURES(X)                                                                                    \
    X(gemm_nn_f32)                                                                                           \
    X(gemm_nt_f32) X(gemm_tn_f32) X(gemm_tt_f32) X(gemv_f32) X(gemv_t_f32) X(ger_f32) X(avg_pool2d_f32)      \
        X(avg_pool2d_dx_f32)
