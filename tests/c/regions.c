/* Trains `model`, whose memory is in two regions: losses as their bits, the checksum of the checkpoint,
 * and the statuses of wrong arguments. */
#include "model.h"

#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_region.h"
#include "regions.h"

static RAM_STRUCT near_by;
static FURTHER_STRUCT far_off IN_FURTHER;
static model_trainer trainer;

static void print_status(const char *what, int status) {
    ag_print(what);
    ag_print(" ");
    ag_print(model_strstatus(status));
    ag_print("\n");
}

static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    uint32_t *crc = (uint32_t *)ctx;
    *crc = ag_crc32(offset == 0 ? 0 : *crc, data, bytes);
    return 0;
}

int main(void) {
    const char *const inside = (const char *)&far_off;
    float loss = 0.0f;
    uint32_t crc = 0;
    print_status("unset", model_train_step(&trainer, x, label, MODEL_BATCH, 0.0f, &loss));
    print_status("null", model_init(&trainer, &near_by, 0, 0));
    print_status("odd", model_init(&trainer, &near_by, (FURTHER_STRUCT *)(uintptr_t)(inside + 2), 0));
    print_status("init", model_init(&trainer, &near_by, &far_off, 0));
    for (int32_t step = 0; step < STEPS; step++) {
        union {
            float value;
            uint32_t bits;
        } said;
        print_status("step",
                     model_train_step(&trainer, x, label, MODEL_BATCH, MODEL_DEFAULT_LR, &said.value));
        ag_print("loss ");
        ag_print_hex(said.bits);
        ag_print("\n");
    }
    print_status("save", model_save(&trainer, add_to_crc, &crc));
    ag_print("crc ");
    ag_print_hex(crc);
    ag_print("\n");
    return 0;
}
