/* Trains the LeNet on the board: epochs over a stream of digits in file order, in batches. */
#include "lenet.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_main.h"
#include "ag_samples.h"

enum { PIXELS = 28 * 28, CLASSES = 10, BATCH = LENET_BATCH };

static lenet_trainer trainer;
static ag_samples samples;
static uint8_t record[PIXELS + 1]; /* a digit in the file: pixels 0..255, then the label */
static float image[BATCH][PIXELS]; /* digits as input of the network: 0..1 */
static uint8_t label[BATCH];
static float score[BATCH][CLASSES];

static void check_samples(int status) {
    ag_require("samples", status, ag_samples_strstatus(status));
}

static void check(const char *doing, int status) {
    ag_require(doing, status, lenet_strstatus(status));
}

/* The next batch, smaller than BATCH if fewer digits are left. Returns its size. */
static int32_t next_batch(uint32_t left) {
    const int32_t n = left < BATCH ? (int32_t)left : BATCH;
    for (int32_t i = 0; i < n; i++) {
        check_samples(ag_samples_next(&samples, record));
        label[i] = record[PIXELS];
        for (int32_t k = 0; k < PIXELS; k++) {
            image[i][k] = (float)record[k] / 255.0f;
        }
    }
    return n;
}

/* One step for each batch of training digits. Returns the mean of their losses, each computed before its
 * update. */
static float train(void) {
    float sum = 0.0f, lost = 0.0f; /* compensated (Kahan) summation */
    for (uint32_t done = 0; done < samples.train;) {
        const int32_t n = next_batch(samples.train - done);
        float loss;
        check("train_step", lenet_train_step(&trainer, image[0], label, n, LENET_DEFAULT_LR, &loss));
        const float add = loss * (float)n - lost, grown = sum + add;
        lost = (grown - sum) - add;
        sum = grown;
        done += (uint32_t)n;
    }
    return samples.train == 0 ? 0.0f : sum / (float)samples.train;
}

/* Returns the number of correctly classified test digits. */
static uint32_t test(void) {
    uint32_t right = 0;
    for (uint32_t done = 0; done < samples.test;) {
        const int32_t n = next_batch(samples.test - done);
        check("predict", lenet_predict(&trainer, image[0], n, score[0]));
        for (int32_t i = 0; i < n; i++) {
            int32_t best = 0;
            for (int32_t c = 1; c < CLASSES; c++) {
                best = score[i][c] > score[i][best] ? c : best;
            }
            right += best == label[i];
        }
        done += (uint32_t)n;
    }
    return right;
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *crc = (uint32_t *)ctx;
    *crc = ag_crc32(offset == 0 ? 0 : *crc, data, bytes);
    return 0;
}

/* CRC-32 of a checkpoint: equal on two machines only if every weight is bit-equal. */
static uint32_t weights_crc(void) {
    uint32_t crc = 0;
    check("save", lenet_save(&trainer, add_to_crc, &crc));
    return crc;
}

int main(void) {
    check_samples(ag_samples_open(&samples));
    if (samples.input_bytes != PIXELS || samples.label_bytes != 1) {
        ag_require("samples", AG_SAMPLES_ERR_HEADER, "records must be 784 pixels and a label");
    }
    check("init", lenet_init(&trainer, 0));

    ag_print("lenet on ");
    ag_print(ag_board_name());
    ag_print(": ");
    ag_print_grouped(samples.train, 0);
    ag_print(" digits to train, ");
    ag_print_grouped(samples.test, 0);
    ag_print(" to test, batch ");
    ag_print_i32(BATCH, 0);
    ag_print(", learning rate ");
    ag_print_f32(LENET_DEFAULT_LR, 0, 4);
    ag_print("\n\nepoch    mean loss    accuracy      steps    weights crc\n");
    for (uint32_t epoch = 1; epoch <= samples.epochs; epoch++) {
        check_samples(ag_samples_seek(&samples, 0));
        const float loss = train();
        const uint32_t right = test();
        ag_print_u32(epoch, 5);
        ag_print_f32(loss, 13, 6);
        ag_print_f32(samples.test == 0 ? 0.0f : 100.0f * (float)right / (float)samples.test, 10, 2);
        ag_print(" %");
        ag_print_grouped(epoch * ((samples.train + BATCH - 1) / BATCH), 11);
        ag_print("       ");
        ag_print_hex(weights_crc());
        ag_print("\n");
    }
    ag_print_memory();
    return 0;
}
