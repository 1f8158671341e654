/* Trains an imported network on images of four surfaces. Prints the accuracy before training and after each
 * epoch. */
#include "import_onnx.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { PIXELS = 16 * 16, SURFACES = 4 };

static import_onnx_trainer trainer;
static ag_samples samples;
static float image[PIXELS]; /* -2 to 2 */
static uint8_t surface;
static uint32_t crc; /* of the records read in this epoch */

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, import_onnx_strstatus(status));
}

static void next_image(void) {
    uint8_t record[PIXELS + 1];
    check_samples(ag_samples_next(&samples, record));
    crc = ag_crc32(crc, record, sizeof record);
    for (int32_t i = 0; i < PIXELS; i++) {
        image[i] = ((float)record[i] - 128.0f) / 64.0f;
    }
    surface = record[PIXELS];
}

/* Returns the mean of the losses, each computed before its update. */
static float train(void) {
    float sum = 0.0f;
    crc = 0;
    check_samples(ag_samples_seek(&samples, 0));
    for (uint32_t i = 0; i < samples.train; i++) {
        float loss;
        next_image();
        check("train_step", import_onnx_train_step(&trainer, image, &surface, IMPORT_ONNX_DEFAULT_LR, &loss));
        sum += loss;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* The accuracy on the images to recognise, which follow those to learn from, in percent. */
static float test(void) {
    uint32_t right = 0;
    for (uint32_t i = 0; i < samples.test; i++) {
        float score[SURFACES];
        int32_t best = 0;
        next_image();
        check("predict", import_onnx_predict(&trainer, image, score));
        for (int32_t k = 1; k < SURFACES; k++) {
            best = score[k] > score[best] ? k : best;
        }
        right += best == surface;
    }
    return samples.test == 0 ? 0.0f : 100.0f * (float)right / (float)samples.test;
}

/* Print a line of the table. */
static void report(uint32_t epoch, float loss) {
    const float right = test();
    if (epoch != 0 && crc != samples.crc) {
        check_samples(AG_SAMPLES_ERR_RECORDS);
    }
    ag_print_u32(epoch, 5);
    if (epoch == 0) {
        ag_print_right("-", 13);
    } else {
        ag_print_f32(loss, 13, 3);
    }
    ag_print_f32(right, 12, 1);
    ag_print(" %\n");
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != PIXELS || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 16 x 16 pixels and a label");
    }
    check("init", import_onnx_init(&trainer, 0));

    ag_print("import_onnx on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" images to learn from, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to recognise\n\nepoch    mean loss     recognised\n");
    check_samples(ag_samples_seek(&samples, samples.train));
    report(0, 0.0f);
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        const float loss = train();
        report(epoch, loss);
    }
    ag_print_memory();
    return 0;
}
