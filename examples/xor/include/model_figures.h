/* xor: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "xor.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static xor_trainer t;
static float x[8];
static uint8_t label[4];
static float loss[1];
static float scores[8];

static void draw(uint32_t step) {
    figures_draw_f32(x, 8, 100u, step, -1.0f, 2.0f);
    figures_draw_u8(label, 4, 101u, step, 2u);
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
    (void)xor_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", xor_init(&t, 0), XOR_OK);
    static const float losses[] = {0.771694064f, 0.661725283f, 0.759655416f, 0.800967574f, 0.715045333f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("xor_train_step", xor_train_step(&t, x, label, 4, XOR_DEFAULT_LR, loss), XOR_OK);
        figures_compare("loss", loss, &losses[step], 1, 8.00967518e-06f);
    }
    draw(5);
    figures_status("xor_predict", xor_predict(&t, x, 4, scores), XOR_OK);
    {
        static const float want[] = {0.184251443f,  0.118107826f,  0.0727000609f, 0.0159075223f,
                                     0.0225326065f, 0.0130147943f, 0.0281045455f, 0.0692064315f};
        figures_compare("scores", scores, want, 8, 1.84251439e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("xor_train_step(NULL, x, label, 4, XOR_DEFAULT_LR, loss)",
                   xor_train_step(NULL, x, label, 4, XOR_DEFAULT_LR, loss), XOR_ERR_NULL);
    figures_status("xor_train_step(&t, NULL, label, 4, XOR_DEFAULT_LR, loss)",
                   xor_train_step(&t, NULL, label, 4, XOR_DEFAULT_LR, loss), XOR_ERR_NULL);
    figures_status("xor_train_step(&t, x, NULL, 4, XOR_DEFAULT_LR, loss)",
                   xor_train_step(&t, x, NULL, 4, XOR_DEFAULT_LR, loss), XOR_ERR_NULL);
    figures_status("xor_train_step(&t, x, label, 0, XOR_DEFAULT_LR, loss)",
                   xor_train_step(&t, x, label, 0, XOR_DEFAULT_LR, loss), XOR_ERR_BATCH);
    figures_status("xor_train_step(&t, x, label, -1, XOR_DEFAULT_LR, loss)",
                   xor_train_step(&t, x, label, -1, XOR_DEFAULT_LR, loss), XOR_ERR_BATCH);
    figures_status("xor_train_step(&t, x, label, 5, XOR_DEFAULT_LR, loss)",
                   xor_train_step(&t, x, label, 5, XOR_DEFAULT_LR, loss), XOR_ERR_BATCH);
    figures_status("xor_train_step(&t, x, label, 4, XOR_DEFAULT_LR, NULL)",
                   xor_train_step(&t, x, label, 4, XOR_DEFAULT_LR, NULL), XOR_ERR_NULL);
    figures_status("xor_predict(NULL, x, 4, scores)", xor_predict(NULL, x, 4, scores), XOR_ERR_NULL);
    figures_status("xor_predict(&t, NULL, 4, scores)", xor_predict(&t, NULL, 4, scores), XOR_ERR_NULL);
    figures_status("xor_predict(&t, x, 0, scores)", xor_predict(&t, x, 0, scores), XOR_ERR_BATCH);
    figures_status("xor_predict(&t, x, -1, scores)", xor_predict(&t, x, -1, scores), XOR_ERR_BATCH);
    figures_status("xor_predict(&t, x, 5, scores)", xor_predict(&t, x, 5, scores), XOR_ERR_BATCH);
    figures_status("xor_predict(&t, x, 4, NULL)", xor_predict(&t, x, 4, NULL), XOR_ERR_NULL);
    label[3] = 2;
    figures_status("xor_train_step(&t, x, label, 4, XOR_DEFAULT_LR, loss), label out of range",
                   xor_train_step(&t, x, label, 4, XOR_DEFAULT_LR, loss), XOR_ERR_LABEL);
    label[3] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
