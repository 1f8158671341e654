/* Trains 50 steps on the same four samples, then prints the output for each of them. */
#include "tanh4.h"

#include "ag_console.h"
#include "ag_main.h"

enum { SAMPLES = 4, STEPS = 50 };

static const float x[SAMPLES][3] = {
    {2.0f, 3.0f, -1.0f}, {3.0f, -1.0f, 0.5f}, {0.5f, 1.0f, 1.0f}, {1.0f, 1.0f, -1.0f}};
static const float target[SAMPLES] = {1.0f, -1.0f, -1.0f, 1.0f};

static tanh4_trainer trainer;

static void check(const char *doing, int status) {
    ag_require(doing, status, tanh4_strstatus(status));
}

int main(void) {
    check("init", tanh4_init(&trainer, 0));
    ag_print("tanh4 on ");
    ag_print(ag_board_name());
    ag_print(": 3-4-4-1 tanh, four samples, sum of squares, learning rate ");
    ag_print_f32(TANH4_DEFAULT_LR, 0, 2);
    ag_print("\n\nstep        loss\n");
    for (int32_t step = 1; step <= STEPS; step++) {
        float loss;
        check("train_step", tanh4_train_step(&trainer, x[0], target, SAMPLES, TANH4_DEFAULT_LR, &loss));
        if (step == 1 || step % 5 == 0) {
            ag_print_i32(step, 4);
            ag_print_f32(loss, 12, 6);
            ag_print("\n");
        }
    }

    float score[SAMPLES];
    check("predict", tanh4_predict(&trainer, x[0], SAMPLES, score));
    ag_print("\ntarget    output\n");
    for (int32_t i = 0; i < SAMPLES; i++) {
        ag_print_f32(target[i], 6, 0);
        ag_print_f32(score[i], 10, 4);
        ag_print("\n");
    }
    ag_print_memory();
    return 0;
}
