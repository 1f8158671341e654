/* Trains two models to answer which number a card of a given colour has. Prints, at intervals, the accuracy
 * of the transformer block and of the linear model on 1,000 new questions. */
#include "attention.h"

#include "ag_console.h"
#include "ag_main.h"
#include "ag_rng.h"

enum { COLOURS = 6, NUMBERS = 4, CARDS = 4, WIDTH = COLOURS + NUMBERS + 1 };
enum { BATCH = ATTENTION_BATCH, STEPS = 400, STEPS_PER_LINE = 50, QUESTIONS = 1000 };

static attention_trainer trainer;
static float x[BATCH][CARDS + 1][WIDTH];
static uint8_t label[BATCH];

static void check(const char *doing, int status) {
    ag_require(doing, status, attention_strstatus(status));
}

/* The numbers 0 to count - 1 in a random order; `draw` counts the numbers drawn. */
static void shuffle(uint8_t *order, uint32_t count, uint32_t stream, uint32_t *draw) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t j = ag_rand_u32(1, stream, (*draw)++) % (i + 1);
        order[i] = order[j];
        order[j] = (uint8_t)i;
    }
}

/* A batch of questions from a stream of random numbers: cards of different colours and numbers, and the
 * colour of one of them. */
static void next_batch(uint32_t stream, uint32_t *draw) {
    for (int32_t b = 0; b < BATCH; b++) {
        uint8_t colour[COLOURS], number[NUMBERS];
        shuffle(colour, COLOURS, stream, draw);
        shuffle(number, NUMBERS, stream, draw);
        for (int32_t card = 0; card <= CARDS; card++) {
            for (int32_t i = 0; i < WIDTH; i++) {
                x[b][card][i] = 0.0f;
            }
        }
        for (int32_t card = 0; card < CARDS; card++) {
            x[b][card][colour[card]] = 1.0f;
            x[b][card][COLOURS + number[card]] = 1.0f;
        }
        const uint32_t chosen = ag_rand_u32(1, stream, (*draw)++) % CARDS;
        x[b][CARDS][colour[chosen]] = 1.0f;
        x[b][CARDS][COLOURS + NUMBERS] = 1.0f;
        label[b] = number[chosen];
    }
}

static uint32_t best(const float *score) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < NUMBERS; i++) {
        at = score[i] > score[at] ? i : at;
    }
    return at;
}

/* The accuracy of both models on the same new questions, in percent. */
static void test(float *block, float *linear) {
    uint32_t draw = 0, right[2] = {0, 0};
    for (int32_t at = 0; at < QUESTIONS; at += BATCH) {
        float scores[BATCH][NUMBERS], lines[BATCH][NUMBERS];
        next_batch(2, &draw);
        check("predict", attention_predict(&trainer, x[0][0], BATCH, scores[0], lines[0]));
        for (int32_t b = 0; b < BATCH; b++) {
            right[0] += best(scores[b]) == label[b];
            right[1] += best(lines[b]) == label[b];
        }
    }
    *block = 100.0f * (float)right[0] / (float)QUESTIONS;
    *linear = 100.0f * (float)right[1] / (float)QUESTIONS;
}

int main(void) {
    uint32_t draw = 0;
    float sum = 0.0f;
    check("init", attention_init(&trainer, 0));
    ag_print("attention on ");
    ag_print(ag_board_name());
    ag_print(": which number has the card of this colour? 4 cards, batch ");
    ag_print_i32(BATCH, 0);
    ag_print("\n\nstep    mean loss, both    right: block    linear\n");
    for (int32_t step = 1; step <= STEPS; step++) {
        float loss;
        next_batch(1, &draw);
        check("train_step",
              attention_train_step(&trainer, x[0][0], label, BATCH, ATTENTION_DEFAULT_LR, &loss));
        sum += loss;
        if (step % STEPS_PER_LINE == 0) {
            float block, linear;
            test(&block, &linear);
            ag_print_i32(step, 4);
            ag_print_f32(sum / (float)STEPS_PER_LINE, 19, 4);
            ag_print_f32(block, 14, 1);
            ag_print(" %");
            ag_print_f32(linear, 8, 1);
            ag_print(" %\n");
            sum = 0.0f;
        }
    }
    ag_print_memory();
    return 0;
}
