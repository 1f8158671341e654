#include "ag_round_shared.h"
#include "ag_round_samples.h"

#include "ag_checkpoint.h"

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

const ag_note *ag_round_identity(const ag_round *r, ag_note *note) {
    memset(note, 0, sizeof *note);
    note->identity = r->note.identity;
    return note->identity == 0 ? NULL : note;
}

/* ---- the start of a round */

/* The checkpoint of the round is the one that was saved last. */
static int open_start(const ag_round *r, ag_checkpoint *c, ag_record *start) {
    const int status = ag_store_open(r->flash, c, start);
    if (status == AG_STORE_OK && start->bytes < AG_CHECKPOINT_HEADER + r->model->state_bytes) {
        return AG_STORE_ERR_LOAD;
    }
    return status;
}

int ag_round_enter(ag_round *r, uint32_t number, const ag_record *start, const ag_note *note) {
    if (!ag_round_samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    r->number = number;
    r->begun = true;
    r->local_buffers = (note->options & AG_ROUND_LOCAL_BUFFERS) != 0;
    r->start = *start;
    r->note = *note;
    r->steps = r->examples = 0;
    r->loss = 0.0f;
    r->spent = 0;
    r->is_measured = false;
    return AG_ROUND_OK;
}

/* The note of the round's start: options as requested, and a seed of noise that is drawn once for the round.
 */
static int make_note(const ag_round *r, const ag_round_request *q, ag_note *note) {
    (void)ag_round_identity(r, note);
    note->options = q->options;
    note->clip = q->clip;
    note->noise = q->noise;
    if (q->noise > 0.0f && (r->entropy == NULL || r->entropy(note->seed, sizeof note->seed) != 0)) {
        return AG_ROUND_ERR_ENTROPY;
    }
    return AG_ROUND_OK;
}

/* The same round again: it is continued if its state is in memory, and otherwise repeated from its start. */
static int begin_again(ag_round *r, const ag_round_request *q, bool local_buffers, ag_checkpoint *c) {
    ag_checkpoint found = *c;
    ag_record start;
    ag_note note;
    uint32_t own;
    int status = open_start(r, &found, &start);
    if (status != AG_STORE_OK) {
        return status;
    }
    if (!ag_store_note(&start, &note)) {
        memset(&note, 0, sizeof note);
    }
    note.identity = r->note.identity;
    if (note.options != q->options || note.clip != q->clip || note.noise != q->noise) {
        return AG_ROUND_ERR_OPTIONS;
    }
    status = ag_round_sum(r, local_buffers, &start, &own);
    if (status != AG_ROUND_OK) {
        return status;
    }
    if (own != q->sum) {
        return AG_ROUND_ERR_START;
    }
    if (r->begun && !q->written) {
        c->sequence = found.sequence;
        return AG_ROUND_OK;
    }
    status = ag_store_load(r->flash, c, r->model->load, r->memory);
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, c->round, &start, &note);
    }
    return status;
}

static bool is_in_range(const ag_round_request *q) {
    const float deviation = q->noise * q->clip;
    const bool masks = (q->options & AG_ROUND_MASKED) != 0;
    return q->number != 0 && q->options <= (AG_ROUND_LOCAL_BUFFERS | AG_ROUND_MASKED) &&
           (masks ? q->clip > 0.0f && q->clip - q->clip == 0.0f : q->clip == 0.0f) && q->noise >= 0.0f &&
           deviation - deviation == 0.0f && (q->noise == 0.0f || deviation > 0.0f);
}

int ag_round_begin(ag_round *r, const ag_round_request *q, ag_checkpoint *c) {
    const bool local_buffers = (q->options & AG_ROUND_LOCAL_BUFFERS) != 0;
    uint32_t own;
    ag_note note;
    if (!is_in_range(q)) {
        return AG_ROUND_ERR_RANGE;
    }
    if (r->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    if (!ag_round_samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    if (q->number < r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    c->graph_id = r->model->graph_id;
    c->program = r->model->program;
    c->round = q->number;
    if (q->number == r->number) {
        return begin_again(r, q, local_buffers, c);
    }
    (void)ag_round_sum(r, local_buffers, NULL, &own);
    if (own != q->sum) {
        return AG_ROUND_ERR_SUM;
    }
    ag_record start;
    int status = make_note(r, q, &note);
    if (status == AG_ROUND_OK) {
        status = ag_store_save_noted(r->flash, c, r->model->save, r->memory, &note);
    }
    if (status == AG_STORE_OK) {
        status = open_start(r, c, &start);
    }
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, q->number, &start, &note);
    }
    return status;
}

/* ---- local steps */

static int read_batch(ag_round *r, uint32_t n, uint32_t seed) {
    const uint32_t all = r->samples->train;
    int status = AG_ROUND_OK;
    for (uint32_t row = 0; row < n && status == AG_ROUND_OK; row++) {
        const uint32_t at = r->examples + row;
        const uint32_t sample = ag_round_sample(at % all, all, seed, at / all);
        status = ag_round_read_row(r, sample, row);
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
    const uint32_t n = ag_round_samples_of_step(r, work->n);
    const float lr = work->lr != work->lr ? r->model->lr : work->lr, rate = lr * work->mu;
    if (n == 0 || work->steps > (UINT32_MAX - r->examples) / n || !(work->mu >= 0.0f) ||
        !(rate - rate == 0.0f) || (work->mu > 0.0f && work->lr != work->lr)) {
        return AG_ROUND_ERR_RANGE;
    }
    int status = AG_ROUND_OK;
    r->is_measured = false;
    for (uint32_t k = 0; k < work->steps && status == AG_ROUND_OK; k++) {
        float loss = 0.0f;
        status = read_batch(r, n, work->seed);
        const uint32_t begin = r->cycles != NULL ? r->cycles() : 0;
        if (status == AG_ROUND_OK) {
            status = r->model->train_step(r->memory, (int32_t)n, lr, &loss);
        }
        if (status != AG_ROUND_OK) {
            return status;
        }
        r->spent += r->cycles != NULL ? r->cycles() - begin : 0;
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
