#include "ag_twin.h"

#include "ag_checkpoint.h"
#include "ag_link.h"
#include "ag_round.h"

#include <stddef.h>
#include <string.h>

void ag_between_parts(void) {
}

typedef struct bytes_at {
    const uint8_t *data;
    uint32_t bytes, from; /* the offset of the first of them */
} bytes_at;

static int read_bytes(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    const bytes_at *b = (const bytes_at *)ctx;
    if (offset < b->from || offset - b->from > b->bytes || bytes > b->bytes - (offset - b->from)) {
        return -1;
    }
    memcpy(data, b->data + (offset - b->from), bytes);
    return 0;
}

uint32_t ag_twin_memory_bytes(void) {
    return ag_linked_model.memory_bytes;
}

void *ag_twin_state(void *memory) {
    return (uint8_t *)memory + ag_linked_model.state_offset;
}

int ag_twin_init(void *memory, uint32_t seed) {
    return ag_linked_model.init(memory, seed);
}

int ag_twin_train(void *memory, const void *start, const void *set, uint32_t set_bytes,
                  const ag_twin_work *work, ag_twin_done *done, uint8_t *delta) {
    bytes_at state = {(const uint8_t *)start, ag_linked_model.state_bytes, AG_CHECKPOINT_HEADER};
    bytes_at records = {(const uint8_t *)set, set_bytes, 0};
    const ag_flash flash = {read_bytes, NULL, NULL, &state, 0, 0};
    const ag_record record = {&flash, 0, AG_CHECKPOINT_HEADER + ag_linked_model.state_bytes};
    const ag_round_work local = {0, work->steps, work->n, work->lr, work->mu, work->seed};
    const uint32_t options = (work->local_buffers != 0 ? (uint32_t)AG_ROUND_LOCAL_BUFFERS : 0u) |
                             (work->clip > 0.0f ? (uint32_t)AG_ROUND_MASKED : 0u);
    ag_note note = {0, options, work->clip, work->noise, {0}};
    ag_round_evaluation tested = {0, 0, 0};
    ag_samples samples;
    ag_round r;

    if (ag_samples_open_source(&samples, read_bytes, &records) != AG_SAMPLES_OK) {
        return AG_ROUND_ERR_SAMPLES;
    }
    memcpy(ag_twin_state(memory), start, ag_linked_model.state_bytes);
    ag_round_init(&r, &ag_linked_model, memory, &flash);
    r.samples = &samples;
    memcpy(note.seed, work->noise_seed, sizeof note.seed);
    int status = ag_round_enter(&r, work->round, &record, &note);
    if (status == AG_ROUND_OK && work->evaluates != 0) {
        status =
            ag_round_evaluate(&r, work->round, 0, samples.test > 0 ? samples.test : samples.train, &tested);
    }
    if (status == AG_ROUND_OK) {
        status = ag_round_train(&r, work->round, &local);
    }
    done->samples = samples.train;
    done->steps = r.steps;
    done->examples = r.examples;
    done->loss = r.loss;
    done->tested = tested.samples;
    done->labels = tested.labels;
    done->right = tested.right;
    const uint32_t all = ag_round_elements(&r);
    for (uint32_t first = 0, count; first < all && status == AG_ROUND_OK; first += count) {
        count = all - first < work->piece ? all - first : work->piece;
        const uint32_t top = first + count < all ? work->top : work->last_top;
        const ag_round_piece piece = {first, count, work->encoding, work->delta_seed, top};
        status = ag_round_delta(&r, work->round, &piece, delta);
        delta += ag_round_delta_bytes(&piece);
    }
    return status;
}
