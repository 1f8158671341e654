/* tanh4: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "tanh4.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static tanh4_trainer t;
static float x[12];
static float target[4];
static float loss[1];
static float scores[4];

static void draw(uint32_t step) {
    figures_draw_f32(x, 12, 100u, step, -1.0f, 2.0f);
    figures_draw_f32(target, 4, 101u, step, 0.100000001f, 0.800000012f);
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
    (void)tanh4_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", tanh4_init(&t, 0), TANH4_OK);
    static const float losses[] = {2.69170237f, 0.436630785f, 0.435934901f, 0.127684504f, 0.152430326f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("tanh4_train_step", tanh4_train_step(&t, x, target, 4, TANH4_DEFAULT_LR, loss),
                       TANH4_OK);
        figures_compare("loss", loss, &losses[step], 1, 2.6917025e-05f);
    }
    draw(5);
    figures_status("tanh4_predict", tanh4_predict(&t, x, 4, scores), TANH4_OK);
    {
        static const float want[] = {0.426563054f, 0.508523107f, 0.519071996f, 0.611976624f};
        figures_compare("scores", scores, want, 4, 6.11976657e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("tanh4_train_step(NULL, x, target, 4, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(NULL, x, target, 4, TANH4_DEFAULT_LR, loss), TANH4_ERR_NULL);
    figures_status("tanh4_train_step(&t, NULL, target, 4, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(&t, NULL, target, 4, TANH4_DEFAULT_LR, loss), TANH4_ERR_NULL);
    figures_status("tanh4_train_step(&t, x, NULL, 4, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(&t, x, NULL, 4, TANH4_DEFAULT_LR, loss), TANH4_ERR_NULL);
    figures_status("tanh4_train_step(&t, x, target, 0, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(&t, x, target, 0, TANH4_DEFAULT_LR, loss), TANH4_ERR_BATCH);
    figures_status("tanh4_train_step(&t, x, target, -1, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(&t, x, target, -1, TANH4_DEFAULT_LR, loss), TANH4_ERR_BATCH);
    figures_status("tanh4_train_step(&t, x, target, 5, TANH4_DEFAULT_LR, loss)",
                   tanh4_train_step(&t, x, target, 5, TANH4_DEFAULT_LR, loss), TANH4_ERR_BATCH);
    figures_status("tanh4_train_step(&t, x, target, 4, TANH4_DEFAULT_LR, NULL)",
                   tanh4_train_step(&t, x, target, 4, TANH4_DEFAULT_LR, NULL), TANH4_ERR_NULL);
    figures_status("tanh4_predict(NULL, x, 4, scores)", tanh4_predict(NULL, x, 4, scores), TANH4_ERR_NULL);
    figures_status("tanh4_predict(&t, NULL, 4, scores)", tanh4_predict(&t, NULL, 4, scores), TANH4_ERR_NULL);
    figures_status("tanh4_predict(&t, x, 0, scores)", tanh4_predict(&t, x, 0, scores), TANH4_ERR_BATCH);
    figures_status("tanh4_predict(&t, x, -1, scores)", tanh4_predict(&t, x, -1, scores), TANH4_ERR_BATCH);
    figures_status("tanh4_predict(&t, x, 5, scores)", tanh4_predict(&t, x, 5, scores), TANH4_ERR_BATCH);
    figures_status("tanh4_predict(&t, x, 4, NULL)", tanh4_predict(&t, x, 4, NULL), TANH4_ERR_NULL);
    figures_status("the state afterwards", crc() == before, 1);
}
