/* Trains the gesture network on bytes of an accelerometer, in epochs over a stream of motions. Prints the
 * accuracy on new motions after each epoch. */
#include "gesture.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { TIMES = 32, AXES = 3, GESTURES = 5, BATCH = GESTURE_BATCH };

static const char *const names[GESTURES] = {"rest", "wave", "shake", "circle left", "circle right"};
static gesture_trainer trainer;
static ag_samples samples;
static float x[BATCH][TIMES][AXES]; /* in g */
static uint8_t label[BATCH];
static uint32_t crc;                              /* of the records read in this epoch */
static uint32_t shown[GESTURES], right[GESTURES]; /* of the test motions, by gesture */

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, gesture_strstatus(status));
}

/* The next n motions in the form of the network's input, and their gestures. */
static void next_batch(int32_t n) {
    uint8_t record[TIMES * AXES + 1];
    for (int32_t b = 0; b < n; b++) {
        check_samples(ag_samples_next(&samples, record));
        crc = ag_crc32(crc, record, sizeof record);
        for (int32_t i = 0; i < TIMES * AXES; i++) {
            x[b][i / AXES][i % AXES] = ((float)record[i] - 128.0f) / 32.0f;
        }
        label[b] = record[TIMES * AXES];
    }
}

/* The size of the next batch if `left` motions remain. */
static int32_t batch_of(uint32_t left) {
    return left < (uint32_t)BATCH ? (int32_t)left : BATCH;
}

/* One step for each batch of training motions. Returns the mean of the losses, each computed before its
 * update. */
static float train(uint32_t *steps) {
    float sum = 0.0f;
    crc = 0;
    check_samples(ag_samples_seek(&samples, 0));
    for (uint32_t at = 0; at < samples.train; at += BATCH) {
        const int32_t n = batch_of(samples.train - at);
        float loss;
        next_batch(n);
        check("train_step", gesture_train_step(&trainer, x[0][0], label, n, &loss));
        sum += (float)n * loss;
        ++*steps;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* Classify every test motion; they follow the training motions in the stream. */
static void test(void) {
    for (int32_t g = 0; g < GESTURES; g++) {
        shown[g] = right[g] = 0;
    }
    for (uint32_t at = 0; at < samples.test; at += BATCH) {
        float score[BATCH][GESTURES];
        const int32_t n = batch_of(samples.test - at);
        next_batch(n);
        check("predict", gesture_predict(&trainer, x[0][0], n, score[0]));
        for (int32_t b = 0; b < n; b++) {
            int32_t best = 0;
            for (int32_t g = 1; g < GESTURES; g++) {
                best = score[b][g] > score[b][best] ? g : best;
            }
            if (label[b] >= GESTURES) {
                check("predict", GESTURE_ERR_LABEL);
            }
            shown[label[b]]++;
            right[label[b]] += best == label[b];
        }
    }
}

static float percent(uint32_t part, uint32_t of) {
    return of == 0 ? 0.0f : 100.0f * (float)part / (float)of;
}

int main(void) {
    uint32_t steps = 0;
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != TIMES * AXES || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 32 times 3 axes and a label");
    }
    check("init", gesture_init(&trainer, 0));

    ag_print("gesture on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" motions to learn from, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to recognise, batch ");
    ag_print_i32(BATCH, 0);
    ag_print("\n\nepoch    mean loss    accuracy    steps\n");
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        const float loss = train(&steps);
        uint32_t all = 0;
        test();
        if (crc != samples.crc) {
            check_samples(AG_SAMPLES_ERR_RECORDS);
        }
        for (int32_t g = 0; g < GESTURES; g++) {
            all += right[g];
        }
        ag_print_u32(epoch, 5);
        ag_print_f32(loss, 13, 4);
        ag_print_f32(percent(all, samples.test), 10, 2);
        ag_print(" %");
        ag_print_grouped(steps, 9);
        ag_print("\n");
    }
    ag_print("\n");
    for (int32_t g = 0; g < GESTURES; g++) {
        ag_print_left(names[g], 14);
        ag_print_u32(right[g], 4);
        ag_print(" of");
        ag_print_u32(shown[g], 4);
        ag_print("\n");
    }
    ag_print_memory();
    return 0;
}
