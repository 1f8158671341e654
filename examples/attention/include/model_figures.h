/* attention: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "attention.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static attention_trainer t;
static float x[440];
static uint8_t label[8];
static float loss[1];
static float scores[32];
static float linear[32];

static void draw(uint32_t step) {
    figures_draw_f32(x, 440, 100u, step, -1.0f, 2.0f);
    figures_draw_u8(label, 8, 101u, step, 4u);
    figures_spoil(loss, sizeof loss);
    figures_spoil(scores, sizeof scores);
    figures_spoil(linear, sizeof linear);
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *sum = (uint32_t *)ctx;
    *sum = ag_crc32(offset == 0 ? 0 : *sum, data, bytes);
    return 0;
}

static uint32_t crc(void) {
    uint32_t sum = 0;
    (void)attention_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", attention_init(&t, 0), ATTENTION_OK);
    static const float losses[] = {3.24775243f, 2.82619429f, 2.6790452f, 3.03664732f, 3.16241693f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("attention_train_step",
                       attention_train_step(&t, x, label, 8, ATTENTION_DEFAULT_LR, loss), ATTENTION_OK);
        figures_compare("loss", loss, &losses[step], 1, 3.24775247e-05f);
    }
    draw(5);
    figures_status("attention_predict", attention_predict(&t, x, 8, scores, linear), ATTENTION_OK);
    {
        static const float want[] = {0.750714064f,  1.45208752f,  0.70815748f,  0.633128226f,
                                     -0.304128587f, 0.271624386f, -1.34536862f, 0.308731139f,
                                     1.21115816f,   1.26720393f,  0.599590182f, 0.500322282f,
                                     0.857445419f,  0.608256042f, 1.41950905f,  0.243358701f};
        figures_compare("scores", scores, want, 16, 1.5149275e-05f);
    }
    {
        static const float want[] = {0.106533274f,  -0.152154565f, -0.196267799f, -0.0161146801f,
                                     0.192132831f,  0.574533224f,  -0.415847808f, -0.143922836f,
                                     -0.199139714f, 0.124823868f,  0.105842419f,  -0.408560276f,
                                     0.53883779f,   0.126735091f,  0.375018001f,  -0.156436116f};
        figures_compare("linear", linear, want, 16, 7.86334749e-06f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("attention_train_step(NULL, x, label, 8, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(NULL, x, label, 8, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_NULL);
    figures_status("attention_train_step(&t, NULL, label, 8, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(&t, NULL, label, 8, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_NULL);
    figures_status("attention_train_step(&t, x, NULL, 8, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(&t, x, NULL, 8, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_NULL);
    figures_status("attention_train_step(&t, x, label, 0, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(&t, x, label, 0, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_BATCH);
    figures_status("attention_train_step(&t, x, label, -1, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(&t, x, label, -1, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_BATCH);
    figures_status("attention_train_step(&t, x, label, 9, ATTENTION_DEFAULT_LR, loss)",
                   attention_train_step(&t, x, label, 9, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_BATCH);
    figures_status("attention_train_step(&t, x, label, 8, ATTENTION_DEFAULT_LR, NULL)",
                   attention_train_step(&t, x, label, 8, ATTENTION_DEFAULT_LR, NULL), ATTENTION_ERR_NULL);
    figures_status("attention_predict(NULL, x, 8, scores, linear)",
                   attention_predict(NULL, x, 8, scores, linear), ATTENTION_ERR_NULL);
    figures_status("attention_predict(&t, NULL, 8, scores, linear)",
                   attention_predict(&t, NULL, 8, scores, linear), ATTENTION_ERR_NULL);
    figures_status("attention_predict(&t, x, 0, scores, linear)", attention_predict(&t, x, 0, scores, linear),
                   ATTENTION_ERR_BATCH);
    figures_status("attention_predict(&t, x, -1, scores, linear)",
                   attention_predict(&t, x, -1, scores, linear), ATTENTION_ERR_BATCH);
    figures_status("attention_predict(&t, x, 9, scores, linear)", attention_predict(&t, x, 9, scores, linear),
                   ATTENTION_ERR_BATCH);
    figures_status("attention_predict(&t, x, 8, NULL, linear)", attention_predict(&t, x, 8, NULL, linear),
                   ATTENTION_ERR_NULL);
    figures_status("attention_predict(&t, x, 8, scores, NULL)", attention_predict(&t, x, 8, scores, NULL),
                   ATTENTION_ERR_NULL);
    label[7] = 4;
    figures_status("attention_train_step(&t, x, label, 8, ATTENTION_DEFAULT_LR, loss), label out of range",
                   attention_train_step(&t, x, label, 8, ATTENTION_DEFAULT_LR, loss), ATTENTION_ERR_LABEL);
    label[7] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
