/* tanh_matmul: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "tanh_matmul.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static tanh_matmul_work t;
static float a[20];
static float b[32];
static float loss[1];
static float da[20];
static float db[32];

static void draw(uint32_t step) {
    figures_draw_f32(a, 20, 100u, step, -1.0f, 2.0f);
    figures_draw_f32(b, 32, 101u, step, -1.0f, 2.0f);
    figures_spoil(loss, sizeof loss);
    figures_spoil(da, sizeof da);
    figures_spoil(db, sizeof db);
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", TANH_MATMUL_OK, TANH_MATMUL_OK);
    draw(0);
    figures_status("tanh_matmul_step", tanh_matmul_step(&t, a, b, loss, da, db), TANH_MATMUL_OK);
    {
        static const float want[] = {-0.309428662f};
        figures_compare("loss", loss, want, 1, 3.09428674e-06f);
    }
    {
        static const float want[] = {-0.573909104f, -0.279353082f, 1.22483444f, 0.0360198058f,
                                     -0.408581853f, 0.130764648f,  1.69083714f, -0.393321395f,
                                     -0.715016544f, 0.0648065433f, 1.79622614f, -1.19876516f,
                                     -0.738905072f, 0.868290186f,  2.51735902f, -0.488208443f};
        figures_compare("da", da, want, 16, 2.62492849e-05f);
    }
    {
        static const float want[] = {0.380328715f,  0.0847859681f,  -0.0296006706f, 0.205698714f,
                                     0.124212667f,  0.0476938076f,  -0.142429665f,  -0.132866129f,
                                     -0.34326914f,  -0.0849303007f, -0.071613647f,  0.0846512169f,
                                     -0.169842526f, -0.112063669f,  0.0521440879f,  0.0925545394f};
        figures_compare("db", db, want, 16, 9.35989283e-06f);
    }
    draw(1);
    figures_status("tanh_matmul_step", tanh_matmul_step(&t, a, b, loss, da, db), TANH_MATMUL_OK);
    {
        static const float want[] = {0.212303877f};
        figures_compare("loss", loss, want, 1, 2.12303871e-06f);
    }
    {
        static const float want[] = {0.490447283f, -0.324820817f, 0.547798276f, -0.969926298f,
                                     0.681079507f, -0.899618924f, 1.25307858f,  -0.36497739f,
                                     0.34935084f,  -0.685165524f, 0.611502647f, -0.629403353f,
                                     0.340037882f, -0.79801935f,  0.697556317f, -0.632512927f};
        figures_compare("da", da, want, 16, 1.25307852e-05f);
    }
    {
        static const float want[] = {1.17062843f,   1.17768073f,   0.719651043f,  1.19422388f,
                                     1.39463198f,   1.31636608f,   1.31833947f,   0.882548451f,
                                     -0.672989547f, -0.816721916f, -0.401919633f, -0.96963191f,
                                     -1.13241792f,  -0.853917003f, -0.977922082f, -0.375302106f};
        figures_compare("db", db, want, 16, 1.81937594e-05f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    figures_status("tanh_matmul_step(NULL, a, b, loss, da, db)", tanh_matmul_step(NULL, a, b, loss, da, db),
                   TANH_MATMUL_ERR_NULL);
    figures_status("tanh_matmul_step(&t, NULL, b, loss, da, db)", tanh_matmul_step(&t, NULL, b, loss, da, db),
                   TANH_MATMUL_ERR_NULL);
    figures_status("tanh_matmul_step(&t, a, NULL, loss, da, db)", tanh_matmul_step(&t, a, NULL, loss, da, db),
                   TANH_MATMUL_ERR_NULL);
    figures_status("tanh_matmul_step(&t, a, b, NULL, da, db)", tanh_matmul_step(&t, a, b, NULL, da, db),
                   TANH_MATMUL_ERR_NULL);
    figures_status("tanh_matmul_step(&t, a, b, loss, NULL, db)", tanh_matmul_step(&t, a, b, loss, NULL, db),
                   TANH_MATMUL_ERR_NULL);
    figures_status("tanh_matmul_step(&t, a, b, loss, da, NULL)", tanh_matmul_step(&t, a, b, loss, da, NULL),
                   TANH_MATMUL_ERR_NULL);
}
