/* lenet: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "lenet.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static lenet_trainer t;
static float x[6272];
static uint8_t label[8];
static float loss[1];
static float scores[80];

static void draw(uint32_t step) {
    figures_draw_f32(x, 6272, 100u, step, -1.0f, 2.0f);
    figures_draw_u8(label, 8, 101u, step, 10u);
    figures_spoil(loss, sizeof loss);
    figures_spoil(scores, sizeof scores);
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *sum = (uint32_t *)ctx;
    *sum = ag_crc32(offset == 0 ? 0 : *sum, data, bytes);
    return 0;
}

static uint32_t crc(void) {
    uint32_t sum = 0;
    (void)lenet_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", lenet_init(&t, 0), LENET_OK);
    static const float losses[] = {2.27383375f, 2.3151474f, 2.31878495f, 2.31527233f, 2.31546068f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("lenet_train_step", lenet_train_step(&t, x, label, 8, LENET_DEFAULT_LR, loss),
                       LENET_OK);
        figures_compare("loss", loss, &losses[step], 1, 2.31878494e-05f);
    }
    draw(5);
    figures_status("lenet_predict", lenet_predict(&t, x, 8, scores), LENET_OK);
    {
        static const float want[] = {0.0120969694f, -0.0153803397f,  0.0831247568f,  0.117208965f,
                                     -0.11224217f,  -0.00339719746f, -0.0647584349f, -0.0766490474f,
                                     0.012249914f,  0.0399738774f,   0.0083804382f,  -0.00929271244f,
                                     0.104992829f,  0.100504562f,    -0.122715428f,  -0.0296008419f};
        figures_compare("scores", scores, want, 16, 1.23870075e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("lenet_train_step(NULL, x, label, 8, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(NULL, x, label, 8, LENET_DEFAULT_LR, loss), LENET_ERR_NULL);
    figures_status("lenet_train_step(&t, NULL, label, 8, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(&t, NULL, label, 8, LENET_DEFAULT_LR, loss), LENET_ERR_NULL);
    figures_status("lenet_train_step(&t, x, NULL, 8, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(&t, x, NULL, 8, LENET_DEFAULT_LR, loss), LENET_ERR_NULL);
    figures_status("lenet_train_step(&t, x, label, 0, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(&t, x, label, 0, LENET_DEFAULT_LR, loss), LENET_ERR_BATCH);
    figures_status("lenet_train_step(&t, x, label, -1, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(&t, x, label, -1, LENET_DEFAULT_LR, loss), LENET_ERR_BATCH);
    figures_status("lenet_train_step(&t, x, label, 9, LENET_DEFAULT_LR, loss)",
                   lenet_train_step(&t, x, label, 9, LENET_DEFAULT_LR, loss), LENET_ERR_BATCH);
    figures_status("lenet_train_step(&t, x, label, 8, LENET_DEFAULT_LR, NULL)",
                   lenet_train_step(&t, x, label, 8, LENET_DEFAULT_LR, NULL), LENET_ERR_NULL);
    figures_status("lenet_predict(NULL, x, 8, scores)", lenet_predict(NULL, x, 8, scores), LENET_ERR_NULL);
    figures_status("lenet_predict(&t, NULL, 8, scores)", lenet_predict(&t, NULL, 8, scores), LENET_ERR_NULL);
    figures_status("lenet_predict(&t, x, 0, scores)", lenet_predict(&t, x, 0, scores), LENET_ERR_BATCH);
    figures_status("lenet_predict(&t, x, -1, scores)", lenet_predict(&t, x, -1, scores), LENET_ERR_BATCH);
    figures_status("lenet_predict(&t, x, 9, scores)", lenet_predict(&t, x, 9, scores), LENET_ERR_BATCH);
    figures_status("lenet_predict(&t, x, 8, NULL)", lenet_predict(&t, x, 8, NULL), LENET_ERR_NULL);
    label[7] = 10;
    figures_status("lenet_train_step(&t, x, label, 8, LENET_DEFAULT_LR, loss), label out of range",
                   lenet_train_step(&t, x, label, 8, LENET_DEFAULT_LR, loss), LENET_ERR_LABEL);
    label[7] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
