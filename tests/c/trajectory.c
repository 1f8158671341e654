/* Trains a workload for STEPS steps; prints every loss, the scores afterwards and the checksums, as bits. */
#include "workload_run.h"

enum { PREDICTIONS = 4 };

int main(void) {
    static float losses[STEPS], scores[SCORES];
    start();
    for (uint32_t step = 0; step < STEPS; step++) {
        read_batch(step);
        if (TRAIN(&trainer, now.x, now.y, MODEL_BATCH, &losses[step]) != MODEL_OK) {
            ag_system_exit(5);
        }
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        print_bits("loss", losses[step]);
    }
    print_word("losses", ag_crc32(0, losses, sizeof losses));
    print_word("state", state_crc());
    for (uint32_t step = 0; step < PREDICTIONS; step++) {
        read_batch(step);
        if (PREDICT(&trainer, now.x, MODEL_BATCH, scores) != MODEL_OK) {
            ag_system_exit(6);
        }
        for (uint32_t i = 0; i < SCORES; i++) {
            print_bits("score", scores[i]);
        }
    }
    print_word("afterwards", state_crc());
    print_word("bytes", (uint32_t)sizeof trainer);
    return 0;
}
