/* keywords: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "keywords.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static keywords_trainer t;
static float x[490];
static uint8_t label[1];
static float loss[1];
static float scores[10];

static void draw(uint32_t step) {
    figures_draw_f32(x, 490, 100u, step, -1.0f, 2.0f);
    figures_draw_u8(label, 1, 101u, step, 10u);
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
    (void)keywords_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", keywords_init(&t, 0), KEYWORDS_OK);
    static const float losses[] = {40.4307404f, 31.7418346f, 8.98017693f, 12.8345146f, 21.0929184f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("keywords_train_step", keywords_train_step(&t, x, label, KEYWORDS_DEFAULT_LR, loss),
                       KEYWORDS_OK);
        figures_compare("loss", loss, &losses[step], 1, 0.000404307415f);
    }
    draw(5);
    figures_status("keywords_predict", keywords_predict(&t, x, scores), KEYWORDS_OK);
    {
        static const float want[] = {2.00679779f,  -73.1671753f, -41.8712082f, 1.52795625f, 3.72497416f,
                                     -2.36492801f, -17.8395462f, -1.46866703f, 6.52854156f, -26.218874f};
        figures_compare("scores", scores, want, 10, 0.000731671811f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("keywords_train_step(NULL, x, label, KEYWORDS_DEFAULT_LR, loss)",
                   keywords_train_step(NULL, x, label, KEYWORDS_DEFAULT_LR, loss), KEYWORDS_ERR_NULL);
    figures_status("keywords_train_step(&t, NULL, label, KEYWORDS_DEFAULT_LR, loss)",
                   keywords_train_step(&t, NULL, label, KEYWORDS_DEFAULT_LR, loss), KEYWORDS_ERR_NULL);
    figures_status("keywords_train_step(&t, x, NULL, KEYWORDS_DEFAULT_LR, loss)",
                   keywords_train_step(&t, x, NULL, KEYWORDS_DEFAULT_LR, loss), KEYWORDS_ERR_NULL);
    figures_status("keywords_train_step(&t, x, label, KEYWORDS_DEFAULT_LR, NULL)",
                   keywords_train_step(&t, x, label, KEYWORDS_DEFAULT_LR, NULL), KEYWORDS_ERR_NULL);
    figures_status("keywords_predict(NULL, x, scores)", keywords_predict(NULL, x, scores), KEYWORDS_ERR_NULL);
    figures_status("keywords_predict(&t, NULL, scores)", keywords_predict(&t, NULL, scores),
                   KEYWORDS_ERR_NULL);
    figures_status("keywords_predict(&t, x, NULL)", keywords_predict(&t, x, NULL), KEYWORDS_ERR_NULL);
    label[0] = 10;
    figures_status("keywords_train_step(&t, x, label, KEYWORDS_DEFAULT_LR, loss), label out of range",
                   keywords_train_step(&t, x, label, KEYWORDS_DEFAULT_LR, loss), KEYWORDS_ERR_LABEL);
    label[0] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
