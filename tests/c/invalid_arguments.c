/* Calls with a NULL pointer, or a label or number of rows out of range; after each the status and the state's
 * checksum, and at the end a step that must continue as if none of them had been made. */
#include "workload_run.h"

#include <stddef.h>

static float loss = 12345.0f, scores[SCORES];

static void report(const char *call, int status) {
    ag_print(call);
    ag_print(" ");
    ag_print_i32(status, 0);
    ag_print(" ");
    ag_print_hex(state_crc());
    ag_print("\n");
}

static void step(void) {
    if (TRAIN(&trainer, now.x, now.y, MODEL_BATCH, &loss) != MODEL_OK) {
        ag_system_exit(5);
    }
    print_bits("loss", loss);
    print_word("state", state_crc());
}

static void labels(void) {
    static const uint8_t wrong[] = {CLASSES, CLASSES + 1, 128, 255};
    for (uint32_t i = 0; i < sizeof wrong; i++) {
        const target valid = now.y[TARGETS - 1];
        now.y[TARGETS - 1] = wrong[i];
        report("label", TRAIN(&trainer, now.x, now.y, MODEL_BATCH, &loss));
        now.y[TARGETS - 1] = valid;
    }
}

static void rows(void) {
#if MODEL_BATCH > 1
    static const int32_t wrong[] = {0, -1, MODEL_BATCH + 1, INT32_MAX, INT32_MIN};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        report("rows", TRAIN(&trainer, now.x, now.y, wrong[i], &loss));
        report("rows", PREDICT(&trainer, now.x, wrong[i], scores));
    }
#endif
}

int main(void) {
    start();
    read_batch(0);
    step();
    report("null", model_init(NULL, 0));
    report("null", TRAIN(NULL, now.x, now.y, MODEL_BATCH, &loss));
    report("null", TRAIN(&trainer, NULL, now.y, MODEL_BATCH, &loss));
    report("null", TRAIN(&trainer, now.x, NULL, MODEL_BATCH, &loss));
    report("null", TRAIN(&trainer, now.x, now.y, MODEL_BATCH, NULL));
    report("null", PREDICT(NULL, now.x, MODEL_BATCH, scores));
    report("null", PREDICT(&trainer, NULL, MODEL_BATCH, scores));
    report("null", PREDICT(&trainer, now.x, MODEL_BATCH, NULL));
    report("null", model_save(NULL, add_to_crc, &loss));
    report("null", model_save(&trainer, NULL, &loss));
    report("null", model_load(NULL, NULL, &loss));
    report("null", model_load(&trainer, NULL, &loss));
    labels();
    rows();
    step();
    return 0;
}
