/* autoencoder: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "autoencoder.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static autoencoder_trainer t;
static float x[20480];
static float loss[1];
static float error[32];

static void draw(uint32_t step) {
    figures_draw_f32(x, 20480, 100u, step, -1.0f, 2.0f);
    figures_spoil(loss, sizeof loss);
    figures_spoil(error, sizeof error);
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *sum = (uint32_t *)ctx;
    *sum = ag_crc32(offset == 0 ? 0 : *sum, data, bytes);
    return 0;
}

static uint32_t crc(void) {
    uint32_t sum = 0;
    (void)autoencoder_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", autoencoder_init(&t, 0), AUTOENCODER_OK);
    static const float losses[] = {0.497437596f, 0.474924982f};
    for (uint32_t step = 0; step < 2; step++) {
        draw(step);
        figures_status("autoencoder_train_step",
                       autoencoder_train_step(&t, x, 32, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_OK);
        figures_compare("loss", loss, &losses[step], 1, 4.97437577e-06f);
    }
    draw(2);
    figures_status("autoencoder_predict", autoencoder_predict(&t, x, 32, error), AUTOENCODER_OK);
    {
        static const float want[] = {0.330570847f, 0.313343376f, 0.342648298f, 0.315513402f,
                                     0.342312157f, 0.331030935f, 0.328265369f, 0.32959643f,
                                     0.329221815f, 0.314944595f, 0.341692328f, 0.329799831f,
                                     0.325150073f, 0.342742175f, 0.35319078f,  0.346470773f};
        figures_compare("error", error, want, 16, 3.59512751e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("autoencoder_train_step(NULL, x, 32, AUTOENCODER_DEFAULT_LR, loss)",
                   autoencoder_train_step(NULL, x, 32, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_ERR_NULL);
    figures_status("autoencoder_train_step(&t, NULL, 32, AUTOENCODER_DEFAULT_LR, loss)",
                   autoencoder_train_step(&t, NULL, 32, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_ERR_NULL);
    figures_status("autoencoder_train_step(&t, x, 0, AUTOENCODER_DEFAULT_LR, loss)",
                   autoencoder_train_step(&t, x, 0, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_train_step(&t, x, -1, AUTOENCODER_DEFAULT_LR, loss)",
                   autoencoder_train_step(&t, x, -1, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_train_step(&t, x, 33, AUTOENCODER_DEFAULT_LR, loss)",
                   autoencoder_train_step(&t, x, 33, AUTOENCODER_DEFAULT_LR, loss), AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_train_step(&t, x, 32, AUTOENCODER_DEFAULT_LR, NULL)",
                   autoencoder_train_step(&t, x, 32, AUTOENCODER_DEFAULT_LR, NULL), AUTOENCODER_ERR_NULL);
    figures_status("autoencoder_predict(NULL, x, 32, error)", autoencoder_predict(NULL, x, 32, error),
                   AUTOENCODER_ERR_NULL);
    figures_status("autoencoder_predict(&t, NULL, 32, error)", autoencoder_predict(&t, NULL, 32, error),
                   AUTOENCODER_ERR_NULL);
    figures_status("autoencoder_predict(&t, x, 0, error)", autoencoder_predict(&t, x, 0, error),
                   AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_predict(&t, x, -1, error)", autoencoder_predict(&t, x, -1, error),
                   AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_predict(&t, x, 33, error)", autoencoder_predict(&t, x, 33, error),
                   AUTOENCODER_ERR_BATCH);
    figures_status("autoencoder_predict(&t, x, 32, NULL)", autoencoder_predict(&t, x, 32, NULL),
                   AUTOENCODER_ERR_NULL);
    figures_status("the state afterwards", crc() == before, 1);
}
