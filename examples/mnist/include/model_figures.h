/* mnist: calls of the generated C, and what PyTorch computes for the same numbers. Written by
 * tests/support/model_vectors.py. */
#include "mnist.h"
#include "ag_crc32.h"
#include "figures.h"

#include <stddef.h>

static mnist_trainer t;
static float x[784];
static uint8_t label[1];
static float loss[1];
static float scores[10];

static void draw(uint32_t step) {
    figures_draw_f32(x, 784, 100u, step, -1.0f, 2.0f);
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
    (void)mnist_save(&t, add_to_crc, &sum);
    return sum;
}

static void steps_are_pytorchs(void) {
    figures_spoil(&t, sizeof t);
    figures_status("init", mnist_init(&t, 0), MNIST_OK);
    static const float losses[] = {2.1322372f, 2.35710287f, 2.20768595f, 2.25204945f, 2.25929523f};
    for (uint32_t step = 0; step < 5; step++) {
        draw(step);
        figures_status("mnist_train_step", mnist_train_step(&t, x, label, MNIST_DEFAULT_LR, loss), MNIST_OK);
        figures_compare("loss", loss, &losses[step], 1, 2.35710286e-05f);
    }
    draw(5);
    figures_status("mnist_predict", mnist_predict(&t, x, scores), MNIST_OK);
    {
        static const float want[] = {-2.269876f,   -2.24373341f, -2.48323178f, -2.26991916f, -2.63688064f,
                                     -2.61843133f, -2.15397f,    -2.27023268f, -2.17678905f, -2.06670356f};
        figures_compare("scores", scores, want, 10, 2.63688053e-05f);
    }
}

static void bad_arguments_are_refused(void) {
    draw(0);
    const uint32_t before = crc();
    figures_status("mnist_train_step(NULL, x, label, MNIST_DEFAULT_LR, loss)",
                   mnist_train_step(NULL, x, label, MNIST_DEFAULT_LR, loss), MNIST_ERR_NULL);
    figures_status("mnist_train_step(&t, NULL, label, MNIST_DEFAULT_LR, loss)",
                   mnist_train_step(&t, NULL, label, MNIST_DEFAULT_LR, loss), MNIST_ERR_NULL);
    figures_status("mnist_train_step(&t, x, NULL, MNIST_DEFAULT_LR, loss)",
                   mnist_train_step(&t, x, NULL, MNIST_DEFAULT_LR, loss), MNIST_ERR_NULL);
    figures_status("mnist_train_step(&t, x, label, MNIST_DEFAULT_LR, NULL)",
                   mnist_train_step(&t, x, label, MNIST_DEFAULT_LR, NULL), MNIST_ERR_NULL);
    figures_status("mnist_predict(NULL, x, scores)", mnist_predict(NULL, x, scores), MNIST_ERR_NULL);
    figures_status("mnist_predict(&t, NULL, scores)", mnist_predict(&t, NULL, scores), MNIST_ERR_NULL);
    figures_status("mnist_predict(&t, x, NULL)", mnist_predict(&t, x, NULL), MNIST_ERR_NULL);
    label[0] = 10;
    figures_status("mnist_train_step(&t, x, label, MNIST_DEFAULT_LR, loss), label out of range",
                   mnist_train_step(&t, x, label, MNIST_DEFAULT_LR, loss), MNIST_ERR_LABEL);
    label[0] = 0;
    figures_status("the state afterwards", crc() == before, 1);
}
