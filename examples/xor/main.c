/* Learns exclusive or: 500 steps on the same four samples, then predicts each of them. */
#include "xor.h"

#include "ag_console.h"
#include "ag_main.h"
#include "ag_math.h"

enum { SAMPLES = 4, EPOCHS = 500 };

static const float x[SAMPLES][2] = {{0.0f, 0.0f}, {0.0f, 1.0f}, {1.0f, 0.0f}, {1.0f, 1.0f}};
static const uint8_t label[SAMPLES] = {0, 1, 1, 0};

static xor_trainer trainer;

static void check(const char *doing, int status) {
    ag_require(doing, status, xor_strstatus(status));
}

static int printed(int32_t epoch) {
    return epoch == 1 || epoch == 2 || epoch == 5 || epoch == 10 || epoch == 20 || epoch == 50 ||
           epoch % 100 == 0;
}

int main(void) {
    check("init", xor_init(&trainer, 0));
    ag_print("xor on ");
    ag_print(ag_board_name());
    ag_print(": 2-8-2 ReLU, batch 4, learning rate ");
    ag_print_f32(XOR_DEFAULT_LR, 0, 1);
    ag_print("\n\nepoch        loss\n");
    for (int32_t epoch = 1; epoch <= EPOCHS; epoch++) {
        float loss;
        check("train_step", xor_train_step(&trainer, x[0], label, SAMPLES, XOR_DEFAULT_LR, &loss));
        if (printed(epoch)) {
            ag_print_i32(epoch, 5);
            ag_print_f32(loss, 12, 6);
            ag_print("\n");
        }
    }

    float score[SAMPLES][2];
    uint32_t right = 0;
    check("predict", xor_predict(&trainer, x[0], SAMPLES, score[0]));
    ag_print("\n x1   x2   P(xor = 1)\n");
    for (int32_t i = 0; i < SAMPLES; i++) {
        const float p = ag_sigmoidf(score[i][1] - score[i][0]); /* the softmax of two scores */
        right += (p > 0.5f) == (label[i] == 1);
        ag_print_f32(x[i][0], 3, 0);
        ag_print_f32(x[i][1], 5, 0);
        ag_print_f32(p, 13, 4);
        ag_print("\n");
    }
    ag_print("\n");
    ag_print_u32(right, 0);
    ag_print(" of 4 right\n");
    ag_print_memory();
    return 0;
}
