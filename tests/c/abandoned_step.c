/* Abandons a step after each number of its parts that may be abandoned, and predicts; then makes a whole
 * step, in parts and by one call: statuses, and the bits of scores and losses, and checksums of the state. */
#include "workload_run.h"

static float loss, scores[SCORES];

static int part(void) {
    return model_train_part(&trainer, now.x, now.y, MODEL_BATCH, MODEL_DEFAULT_LR, &loss);
}

static void end(int32_t code, int status, int wanted) {
    if (status != wanted) {
        ag_system_exit(code);
    }
}

int main(void) {
    start();
    read_batch(0);
    for (int32_t most = 0; most <= MODEL_PARTS_TO_ABORT; most++) {
        for (int32_t done = 0; done < most; done++) {
            end(5, part(), MODEL_MORE);
            end(6, PREDICT(&trainer, now.x, MODEL_BATCH, scores), MODEL_ERR_BUSY);
        }
        end(7, model_abort(&trainer), MODEL_OK);
        end(8, PREDICT(&trainer, now.x, MODEL_BATCH, scores), MODEL_OK);
        print_word("scores", ag_crc32(0, scores, sizeof scores));
        print_word("state", state_crc());
    }
    for (int32_t done = 1; done < MODEL_PARTS; done++) {
        end(9, part(), MODEL_MORE);
        if (done > MODEL_PARTS_TO_ABORT) {
            end(10, model_abort(&trainer), MODEL_ERR_BUSY);
        }
    }
    end(11, part(), MODEL_OK);
    print_bits("loss", loss);
    end(12, TRAIN(&trainer, now.x, now.y, MODEL_BATCH, &loss), MODEL_OK);
    print_bits("loss", loss);
    print_word("trained", state_crc());
    return 0;
}
