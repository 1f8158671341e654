#include "ag_round.h"

#include "ag_checkpoint.h"
#include "ag_rng.h"
#include "ag_round_shared.h"

#include <stddef.h>
#include <string.h>

void ag_round_init(ag_round *r, const ag_link_model *model, void *memory, const ag_flash *flash) {
    memset(r, 0, sizeof *r);
    r->model = model;
    r->memory = (uint8_t *)memory;
    r->flash = flash;
}

void ag_round_leave(ag_round *r, uint32_t number) {
    r->number = number;
    r->begun = false;
}

/* ---- the start of a round */

/* The bytes that a record holds for one sample of an array: as they are in memory; or, with `units`, one for
 * each float. */
static uint32_t bytes_in_record(const ag_link_array *a, bool units) {
    const uint32_t bytes = a->row != 0 ? a->row : a->fixed;
    return units && a->is_f32 ? bytes / 4 : bytes;
}

static uint32_t part_of_record(const ag_link_model *m, bool targets, bool units) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < m->arrays; i++) {
        bytes += m->array[i].is_target == targets ? bytes_in_record(&m->array[i], units) : 0;
    }
    return bytes;
}

/* Whether the floats of a part of the records are bytes: `part` bytes are as many as these take. Otherwise
 * they are floats, and `fits` says whether the number of bytes is right. */
static bool holds_units(const ag_link_model *m, bool targets, uint32_t part, bool *fits) {
    const bool units = part != part_of_record(m, targets, false);
    *fits = part == part_of_record(m, targets, units);
    return units;
}

static bool samples_fit(const ag_round *r) {
    bool inputs = false, targets = false;
    if (r->samples != NULL && r->samples->train > 0) {
        (void)holds_units(r->model, false, r->samples->input_bytes, &inputs);
        (void)holds_units(r->model, true, r->samples->label_bytes, &targets);
    }
    return inputs && targets;
}

/* The checkpoint of the round is the one that was saved last. */
static int open_start(const ag_round *r, ag_checkpoint *c, ag_record *start) {
    const int status = ag_store_open(r->flash, c, start);
    if (status == AG_STORE_OK && start->bytes != AG_CHECKPOINT_HEADER + r->model->state_bytes) {
        return AG_STORE_ERR_LOAD;
    }
    return status;
}

int ag_round_enter(ag_round *r, uint32_t number, bool local_buffers, const ag_record *start) {
    if (!samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    r->number = number;
    r->begun = true;
    r->local_buffers = local_buffers;
    r->start = *start;
    r->steps = r->examples = 0;
    r->loss = 0.0f;
    return AG_ROUND_OK;
}

/* The same round again: it is continued if its state is in memory, and otherwise repeated from its start. */
static int begin_again(ag_round *r, uint32_t sum, bool local_buffers, bool written, ag_checkpoint *c) {
    ag_checkpoint found = *c;
    ag_record start;
    uint32_t own;
    int status = open_start(r, &found, &start);
    if (status == AG_STORE_OK) {
        status = ag_round_sum(r, local_buffers, &start, &own);
    }
    if (status != AG_ROUND_OK) {
        return status;
    }
    if (own != sum) {
        return AG_ROUND_ERR_START;
    }
    if (r->begun && !written && r->local_buffers == local_buffers) {
        c->sequence = found.sequence;
        return AG_ROUND_OK;
    }
    status = ag_store_load(r->flash, c, r->model->load, r->memory);
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, c->round, local_buffers, &start);
    }
    return status;
}

int ag_round_begin(ag_round *r, uint32_t number, uint32_t sum, uint32_t options, bool written,
                   ag_checkpoint *c) {
    const bool local_buffers = (options & AG_ROUND_LOCAL_BUFFERS) != 0;
    uint32_t own;
    if (number == 0 || options > AG_ROUND_LOCAL_BUFFERS) {
        return AG_ROUND_ERR_RANGE;
    }
    if (r->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    if (!samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    if (number < r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    c->graph_id = r->model->graph_id;
    c->program = r->model->program;
    c->round = number;
    if (number == r->number) {
        return begin_again(r, sum, local_buffers, written, c);
    }
    (void)ag_round_sum(r, local_buffers, NULL, &own);
    if (own != sum) {
        return AG_ROUND_ERR_SUM;
    }
    ag_record start;
    int status = ag_store_save(r->flash, c, r->model->save, r->memory);
    if (status == AG_STORE_OK) {
        status = open_start(r, c, &start);
    }
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, number, local_buffers, &start);
    }
    return status;
}

/* ---- local steps */

uint32_t ag_round_sample(uint32_t i, uint32_t n, uint32_t seed, uint32_t epoch) {
    uint32_t bits = 1;
    while (bits < 32 && (n - 1) >> bits != 0) {
        bits++;
    }
    const uint32_t mask = 0xffffffffu >> (32 - bits), shift = (bits + 1) / 2;
    do { /* a bijection of 0 to mask; what it maps outside of the samples it maps again */
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t factor = ag_rand_u32(seed, epoch, 2 * k) | 1u;
            i = (i * factor + ag_rand_u32(seed, epoch, 2 * k + 1)) & mask;
            i ^= i >> shift;
        }
    } while (i >= n);
    return i;
}

/* Reads a sample into row `row` of the inputs, or of the targets. Bytes become floats in place, from the end
 * of the row's memory on. */
static int read_row(const ag_round *r, uint32_t sample, uint32_t row, bool targets) {
    const ag_link_model *m = r->model;
    uint32_t from = targets ? r->samples->input_bytes : 0;
    bool fits;
    const bool units =
        holds_units(m, targets, targets ? r->samples->label_bytes : r->samples->input_bytes, &fits);
    for (uint32_t i = 0; i < m->arrays; i++) {
        const ag_link_array *a = &m->array[i];
        if (a->is_target != targets) {
            continue;
        }
        const uint32_t all = bytes_in_record(a, false), bytes = bytes_in_record(a, units);
        const uint32_t place = m->input_offset + a->offset + row * a->row;
        uint8_t *to = r->memory + place, *last = to + (all - bytes);
        if (ag_samples_part(r->samples, sample, from, last, bytes) != AG_SAMPLES_OK) {
            return AG_ROUND_ERR_SAMPLES;
        }
        for (; to < last; to += sizeof(float), last++) {
            const float value = (float)*last / 255.0f;
            memcpy(to, &value, sizeof value);
        }
        from += bytes;
    }
    return AG_ROUND_OK;
}

/* The samples of a step with n requested: 0 if there cannot be so many. An array whose size does not
 * depend on n takes all of it from one sample. */
static uint32_t samples_of_step(const ag_round *r, uint32_t n) {
    uint32_t most = r->model->batch;
    for (uint32_t i = 0; i < r->model->arrays; i++) {
        most = r->model->array[i].row == 0 ? 1 : most;
    }
    if (n == 0) {
        return most < r->samples->train ? most : r->samples->train;
    }
    return n <= most ? n : 0;
}

static int read_batch(ag_round *r, uint32_t n, uint32_t seed) {
    const uint32_t all = r->samples->train;
    int status = AG_ROUND_OK;
    for (uint32_t row = 0; row < n && status == AG_ROUND_OK; row++) {
        const uint32_t at = r->examples + row;
        const uint32_t sample = ag_round_sample(at % all, all, seed, at / all);
        status = read_row(r, sample, row, false);
        if (status == AG_ROUND_OK) {
            status = read_row(r, sample, row, true);
        }
    }
    return status;
}

int ag_round_train(ag_round *r, uint32_t number, const ag_round_work *work) {
    if (!r->begun || number != r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    if (work->first != r->steps) {
        return AG_ROUND_ERR_STEP;
    }
    const uint32_t n = samples_of_step(r, work->n);
    const float lr = work->lr != work->lr ? r->model->lr : work->lr, rate = lr * work->mu;
    if (n == 0 || work->steps > (UINT32_MAX - r->examples) / n || !(work->mu >= 0.0f) ||
        !(rate - rate == 0.0f) || (work->mu > 0.0f && work->lr != work->lr)) {
        return AG_ROUND_ERR_RANGE;
    }
    int status = AG_ROUND_OK;
    for (uint32_t k = 0; k < work->steps && status == AG_ROUND_OK; k++) {
        float loss = 0.0f;
        status = read_batch(r, n, work->seed);
        if (status == AG_ROUND_OK) {
            status = r->model->train_step(r->memory, (int32_t)n, lr, &loss);
        }
        if (status != AG_ROUND_OK) {
            return status;
        }
        r->steps++;
        r->examples += n;
        r->loss += loss;
        if (work->mu > 0.0f) {
            status = ag_round_pull(r, rate, work->seed);
            r->begun = status == AG_ROUND_OK; /* otherwise half of the weights are changed */
        }
    }
    return status;
}
