/* Trains on the sounds of the factory's machines, then adapts to the machine on site. Prints after each phase
 * how well the error separates a worn bearing from a good one. */
#include "autoencoder.h"

#include "ag_console.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { BANDS = 640, BATCH = AUTOENCODER_BATCH, MOST_TESTS = 1024 };

static autoencoder_trainer trainer;
static ag_samples samples;
static float x[BATCH][BANDS];
static float error[MOST_TESTS]; /* of each test sound: its reconstruction error */
static uint8_t kind[MOST_TESTS];

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, autoencoder_strstatus(status));
}

/* The next BATCH sounds in the form of the network's input, and their kinds. */
static void next_batch(uint8_t *kinds) {
    uint8_t record[BANDS + 1];
    for (int32_t b = 0; b < BATCH; b++) {
        check_samples(ag_samples_next(&samples, record));
        for (int32_t i = 0; i < BANDS; i++) {
            x[b][i] = ((float)record[i] - 128.0f) / 32.0f;
        }
        kinds[b] = record[BANDS];
    }
}

/* All epochs over one half of the training sounds, with a learning rate that decreases to zero. Returns the
 * last loss. */
static float train(uint32_t half) {
    const uint32_t batches = samples.train / 2 / BATCH, steps = samples.epochs * batches;
    uint8_t kinds[BATCH];
    float loss = 0.0f;
    for (uint32_t step = 0; step < steps; step++) {
        if (step % batches == 0) {
            check_samples(ag_samples_seek(&samples, half * (samples.train / 2)));
        }
        next_batch(kinds);
        const float lr = AUTOENCODER_DEFAULT_LR * (1.0f - (float)step / (float)steps);
        check("train_step", autoencoder_train_step(&trainer, x[0], BATCH, lr, &loss));
    }
    return loss;
}

/* Compute the error of every test sound. Returns the probability that a worn bearing has a larger error than
 * a good one: the area under the ROC curve. */
static float judge(void) {
    check_samples(ag_samples_seek(&samples, samples.train));
    for (uint32_t at = 0; at < samples.test; at += BATCH) {
        next_batch(kind + at);
        check("predict", autoencoder_predict(&trainer, x[0], BATCH, error + at));
    }
    uint32_t pairs = 0, right = 0; /* right counts halves */
    for (uint32_t i = 0; i < samples.test; i++) {
        for (uint32_t j = 0; j < samples.test; j++) {
            if (kind[i] == 2 && kind[j] == 1) {
                pairs++;
                right += error[i] > error[j] ? 2u : error[i] == error[j];
            }
        }
    }
    return pairs == 0 ? 0.0f : 0.5f * (float)right / (float)pairs;
}

/* The mean error of all sounds of a kind. */
static float mean_error(uint8_t of) {
    float sum = 0.0f;
    uint32_t count = 0;
    for (uint32_t i = 0; i < samples.test; i++) {
        if (kind[i] == of) {
            sum += error[i];
            count++;
        }
    }
    return count == 0 ? 0.0f : sum / (float)count;
}

static void report(const char *after, float loss) {
    const float auc = judge();
    ag_print_left(after, 12);
    ag_print_f32(loss, 13, 4);
    ag_print_f32(mean_error(1), 15, 4);
    ag_print_f32(mean_error(2), 15, 4);
    ag_print_f32(auc, 8, 3);
    ag_print("\n");
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != BANDS || samples.label_bytes != 1 || samples.train % (2 * BATCH) != 0 ||
        samples.test % BATCH != 0 || samples.test > MOST_TESTS) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER,
                   "records must be 640 bands and a label, in whole batches");
    }
    check("init", autoencoder_init(&trainer, 0));

    ag_print("autoencoder on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train / 2, 0);
    ag_print(" sounds of the factory, ");
    ag_print_grouped(samples.train / 2, 0);
    ag_print(" of the site, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to judge\n\nlearned             loss    error, good    error, worn     AUC\n");
    report("factory", train(0));
    report("site", train(1));
    ag_print_memory();
    return 0;
}
