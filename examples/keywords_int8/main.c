/* Adapts the classifier of the keyword network to a new voice, which says two new words among others. Prints
 * the accuracy before training and after each epoch. */
#include "keywords_int8.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { FEATURES = 49 * 10, WORDS = 10 };

#if KEYWORDS_INT8_BATCH != 1
#error main.c feeds one word at a time: give the model an input of batch 1
#endif

static keywords_int8_trainer trainer;
static ag_samples samples;
static float x[FEATURES];
static uint8_t word;
static uint32_t crc; /* of the records read in this epoch */

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, keywords_int8_strstatus(status));
}

static void next_word(void) {
    uint8_t record[FEATURES + 1];
    check_samples(ag_samples_next(&samples, record));
    crc = ag_crc32(crc, record, sizeof record);
    for (int32_t i = 0; i < FEATURES; i++) {
        x[i] = ((float)record[i] - 128.0f) / 64.0f;
    }
    word = record[FEATURES];
}

/* Epoch 1, 2, ..., with a learning rate that decreases to zero over all of them. Returns the mean of the
 * losses, each computed before its update. */
static float train(uint32_t epoch) {
    const uint32_t steps = samples.epochs * samples.train;
    float sum = 0.0f;
    crc = 0;
    check_samples(ag_samples_seek(&samples, 0));
    for (uint32_t i = 0; i < samples.train; i++) {
        const uint32_t step = (epoch - 1) * samples.train + i;
        const float lr = KEYWORDS_INT8_DEFAULT_LR * (1.0f - (float)step / (float)steps);
        float loss;
        next_word();
        check("train_step", keywords_int8_train_step(&trainer, x, &word, lr, &loss));
        sum += loss;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* The accuracy on the next `count` words, in percent. */
static float test(uint32_t count) {
    uint32_t right = 0;
    for (uint32_t i = 0; i < count; i++) {
        float score[WORDS];
        int32_t best = 0;
        next_word();
        check("predict", keywords_int8_predict(&trainer, x, score));
        for (int32_t w = 1; w < WORDS; w++) {
            best = score[w] > score[best] ? w : best;
        }
        right += best == word;
    }
    return count == 0 ? 0.0f : 100.0f * (float)right / (float)count;
}

/* Print a line of the table. The test words, first the new voice's, then the others', follow the
 * training words in the stream. */
static void report(uint32_t epoch, float loss) {
    const float new_voice = test(samples.test / 2);
    const float others = test(samples.test - samples.test / 2);
    if (epoch != 0 && crc != samples.crc) {
        check_samples(AG_SAMPLES_ERR_RECORDS);
    }
    ag_print_u32(epoch, 5);
    if (epoch == 0) {
        ag_print_right("-", 13);
    } else {
        ag_print_f32(loss, 13, 4);
    }
    ag_print_f32(new_voice, 14, 1);
    ag_print(" %");
    ag_print_f32(others, 16, 1);
    ag_print(" %\n");
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != FEATURES || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 49 frames of 10 bands and a label");
    }
    check("init", keywords_int8_init(&trainer, 0));

    ag_print("keywords_int8 on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" words of a new voice to learn from, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to recognise\n\nepoch    mean loss     new voice      other voices\n");
    check_samples(ag_samples_seek(&samples, samples.train));
    report(0, 0.0f);
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        const float loss = train(epoch);
        report(epoch, loss);
    }
    ag_print_memory();
    return 0;
}
