/* Trains the digit network on the board: epochs over a stream of digits in file order, one step per digit. */
#include "mnist.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { PIXELS = 28 * 28, CLASSES = 10 };

#if MNIST_BATCH != 1
#error main.c feeds one digit at a time: give the model an input of batch 1
#endif

static mnist_trainer trainer;
static ag_samples samples;
static uint8_t record[PIXELS + 1]; /* the digit in the file: pixels 0..255, then the label */
static float image[PIXELS];        /* the digit as input of the network: 0..1 */

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, mnist_strstatus(status));
}

static void next_digit(uint32_t *crc) {
    check_samples(ag_samples_next(&samples, record));
    *crc = ag_crc32(*crc, record, sizeof record);
    for (int32_t i = 0; i < PIXELS; i++) {
        image[i] = (float)record[i] / 255.0f;
    }
}

/* One step for each training digit. Returns the mean of the losses, each computed before its update. */
static float train(uint32_t *crc) {
    float sum = 0.0f, lost = 0.0f; /* compensated (Kahan) summation */
    for (uint32_t i = 0; i < samples.train; i++) {
        float loss;
        next_digit(crc);
        check("train_step", mnist_train_step(&trainer, image, record + PIXELS, MNIST_DEFAULT_LR, &loss));
        const float add = loss - lost, grown = sum + add;
        lost = (grown - sum) - add;
        sum = grown;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* Returns the number of correctly classified test digits. */
static uint32_t test(uint32_t *crc) {
    uint32_t right = 0;
    for (uint32_t i = 0; i < samples.test; i++) {
        float score[CLASSES];
        int32_t best = 0;
        next_digit(crc);
        check("predict", mnist_predict(&trainer, image, score));
        for (int32_t c = 1; c < CLASSES; c++) {
            best = score[c] > score[best] ? c : best;
        }
        right += best == record[PIXELS];
    }
    return right;
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != PIXELS || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 784 pixels and a label");
    }
    check("init", mnist_init(&trainer, 0));

    ag_print("mnist on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" digits to train, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to test, batch 1, learning rate ");
    ag_print_f32(MNIST_DEFAULT_LR, 0, 4);
    ag_print("\n\nepoch    mean loss    accuracy      steps    data crc\n");
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        uint32_t crc = 0;
        check_samples(ag_samples_seek(&samples, 0));
        const float loss = train(&crc);
        const uint32_t trained = crc; /* of the training digits, in their order */
        const uint32_t right = test(&crc);
        if (crc != samples.crc) {
            check_samples(AG_SAMPLES_ERR_RECORDS);
        }
        ag_print_u32(epoch, 5);
        ag_print_f32(loss, 13, 6);
        ag_print_f32(samples.test == 0 ? 0.0f : 100.0f * (float)right / (float)samples.test, 10, 2);
        ag_print(" %");
        ag_print_grouped(epoch * samples.train, 11);
        ag_print("    ");
        ag_print_hex(trained);
        ag_print("\n");
    }
    ag_print_memory();
    return 0;
}
