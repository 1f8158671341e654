/* Shared by the test programs of workloads: the trainer called `model`, its batches, checksums and printing.
 * workload.h, generated next to model.h, has STEPS, RECORDS, X_FLOATS, TARGETS, SCORES and the type `target`.
 */
#ifndef WORKLOAD_RUN_H
#define WORKLOAD_RUN_H

#include "model.h"
#include "workload.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_system.h"

#include <string.h>

/* The arguments of calls with a batch of one and a batch of up to MODEL_BATCH rows. */
#if MODEL_BATCH == 1
#define TRAIN(t, x, y, n, loss) ((void)(n), model_train_step(t, x, y, MODEL_DEFAULT_LR, loss))
#define PREDICT(t, x, n, scores) ((void)(n), model_predict(t, x, scores))
#else
#define TRAIN(t, x, y, n, loss) model_train_step(t, x, y, n, MODEL_DEFAULT_LR, loss)
#define PREDICT(t, x, n, scores) model_predict(t, x, n, scores)
#endif

typedef struct batch {
    float x[X_FLOATS];
    target y[TARGETS];
} batch;

static model_trainer trainer;
static batch now;

/* All bits set reads as NaN, so that a value that is read before it is written is noticed. */
static void start(void) {
    memset(&trainer, 0xff, sizeof trainer);
    if (model_init(&trainer, 0) != MODEL_OK) {
        ag_system_exit(2);
    }
}

/* The batch of a step: batches.bin holds RECORDS of them, as the struct's members without padding. */
static void read_batch(uint32_t step) {
    static int32_t file = -1;
    const uint32_t bytes = sizeof now.x + sizeof now.y, at = step % RECORDS * bytes;
    if (file < 0) {
        file = ag_system_open("batches.bin");
    }
    if (file < 0 || ag_system_read(file, at, now.x, sizeof now.x) != 0 ||
        ag_system_read(file, at + (uint32_t)sizeof now.x, now.y, sizeof now.y) != 0) {
        ag_system_exit(3);
    }
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *crc = (uint32_t *)ctx;
    *crc = ag_crc32(offset == 0 ? 0 : *crc, data, bytes);
    return 0;
}

/* CRC-32 of the checkpoint that the trainer writes. */
static uint32_t state_crc(void) {
    uint32_t crc = 0;
    if (model_save(&trainer, add_to_crc, &crc) != MODEL_OK) {
        ag_system_exit(4);
    }
    return crc;
}

static void print_word(const char *name, uint32_t word) {
    ag_print(name);
    ag_print(" ");
    ag_print_hex(word);
    ag_print("\n");
}

/* Prints a float as its bits. */
static void print_bits(const char *name, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    print_word(name, bits);
}

#endif
