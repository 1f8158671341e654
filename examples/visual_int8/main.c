/* Adapts the end of MobileNetV2 to a dim, warm light and to two new photographs. Prints the accuracy before
 * training and after each epoch. */
#include "visual_int8.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { PIXELS = 96 * 96 * 3, PHOTOGRAPHS = 10 };

static visual_int8_trainer trainer;
static ag_samples samples;
static uint8_t crop[PIXELS + 1]; /* the last byte is the number of the photograph */
static uint32_t crc;             /* of the records read in this epoch */

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, visual_int8_strstatus(status));
}

static void next_crop(void) {
    check_samples(ag_samples_next(&samples, crop));
    crc = ag_crc32(crc, crop, sizeof crop);
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
        const float lr = VISUAL_INT8_DEFAULT_LR * (1.0f - (float)step / (float)steps);
        float loss;
        next_crop();
        check("train_step", visual_int8_train_step(&trainer, crop, &crop[PIXELS], lr, &loss));
        sum += loss;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* The accuracy on the next `count` crops, in percent. */
static float test(uint32_t count) {
    uint32_t right = 0;
    for (uint32_t i = 0; i < count; i++) {
        float score[PHOTOGRAPHS];
        int32_t best = 0;
        next_crop();
        check("predict", visual_int8_predict(&trainer, crop, score));
        for (int32_t k = 1; k < PHOTOGRAPHS; k++) {
            best = score[k] > score[best] ? k : best;
        }
        right += best == crop[PIXELS];
    }
    return count == 0 ? 0.0f : 100.0f * (float)right / (float)count;
}

/* Print a line of the table. The crops to recognise, first from the new photographs, then from the
 * known ones, follow the crops to learn from in the stream. */
static void report(uint32_t epoch, float loss) {
    const float new_ones = test(samples.test / 2);
    const float known = test(samples.test - samples.test / 2);
    if (epoch != 0 && crc != samples.crc) {
        check_samples(AG_SAMPLES_ERR_RECORDS);
    }
    ag_print_u32(epoch, 5);
    if (epoch == 0) {
        ag_print_right("-", 13);
    } else {
        ag_print_f32(loss, 13, 3);
    }
    ag_print_f32(new_ones, 19, 1);
    ag_print(" %");
    ag_print_f32(known, 21, 1);
    ag_print(" %\n");
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != PIXELS || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 96 x 96 pixels of 3 bytes and a label");
    }
    check("init", visual_int8_init(&trainer, 0));

    ag_print("visual_int8 on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" crops to learn from, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to recognise\n\nepoch    mean loss     new photographs     known photographs\n");
    check_samples(ag_samples_seek(&samples, samples.train));
    report(0, 0.0f);
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        const float loss = train(epoch);
        report(epoch, loss);
    }
    ag_print_memory();
    return 0;
}
