/* gesture: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "gesture.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static gesture_trainer t;
static float x[384];
static uint8_t label[4];
static float loss[1];
static float scores[20];

static void draw(uint32_t step) {
    figures_draw_f32(x, 384, 100u, step, -1.0f, 2.0f);
    figures_draw_u8(label, 4, 101u, step, 5u);
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
    (void)gesture_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", gesture_init(&t, 0), GESTURE_OK);
    static const float losses[] = {1.60372996f, 1.59510636f, 1.6821413f, 1.5244025f, 1.69926f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("gesture_train_step", gesture_train_step(&t, x, label, 4, loss), GESTURE_OK);
        figures_compare("loss", loss, &losses[step], 1, 1.69926006e-05f);
    }
    draw(5);
    figures_status("gesture_predict", gesture_predict(&t, x, 4, scores), GESTURE_OK);
    {
        static const float want[] = {-0.38942489f,  -0.135058075f, -0.136064023f,  0.0574443415f,
                                     0.0754935592f, -0.310036749f, -0.183656916f,  -0.159796879f,
                                     0.0898066014f, 0.0156669021f, -0.265432745f,  -0.144104943f,
                                     -0.194709197f, 0.0576735958f, -0.0161120147f, -0.306430161f};
        figures_compare("scores", scores, want, 16, 3.89424895e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("gesture_train_step(NULL, x, label, 4, loss)", gesture_train_step(NULL, x, label, 4, loss),
                   GESTURE_ERR_NULL);
    figures_status("gesture_train_step(&t, NULL, label, 4, loss)",
                   gesture_train_step(&t, NULL, label, 4, loss), GESTURE_ERR_NULL);
    figures_status("gesture_train_step(&t, x, NULL, 4, loss)", gesture_train_step(&t, x, NULL, 4, loss),
                   GESTURE_ERR_NULL);
    figures_status("gesture_train_step(&t, x, label, 0, loss)", gesture_train_step(&t, x, label, 0, loss),
                   GESTURE_ERR_BATCH);
    figures_status("gesture_train_step(&t, x, label, -1, loss)", gesture_train_step(&t, x, label, -1, loss),
                   GESTURE_ERR_BATCH);
    figures_status("gesture_train_step(&t, x, label, 5, loss)", gesture_train_step(&t, x, label, 5, loss),
                   GESTURE_ERR_BATCH);
    figures_status("gesture_train_step(&t, x, label, 4, NULL)", gesture_train_step(&t, x, label, 4, NULL),
                   GESTURE_ERR_NULL);
    figures_status("gesture_predict(NULL, x, 4, scores)", gesture_predict(NULL, x, 4, scores),
                   GESTURE_ERR_NULL);
    figures_status("gesture_predict(&t, NULL, 4, scores)", gesture_predict(&t, NULL, 4, scores),
                   GESTURE_ERR_NULL);
    figures_status("gesture_predict(&t, x, 0, scores)", gesture_predict(&t, x, 0, scores), GESTURE_ERR_BATCH);
    figures_status("gesture_predict(&t, x, -1, scores)", gesture_predict(&t, x, -1, scores),
                   GESTURE_ERR_BATCH);
    figures_status("gesture_predict(&t, x, 5, scores)", gesture_predict(&t, x, 5, scores), GESTURE_ERR_BATCH);
    figures_status("gesture_predict(&t, x, 4, NULL)", gesture_predict(&t, x, 4, NULL), GESTURE_ERR_NULL);
    label[3] = 5;
    figures_status("gesture_train_step(&t, x, label, 4, loss), label out of range",
                   gesture_train_step(&t, x, label, 4, loss), GESTURE_ERR_LABEL);
    label[3] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
