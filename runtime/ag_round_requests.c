/* The request handlers of rounds, and of the notes that a board of a fleet keeps. */
#include "ag_requests.h"

#include "ag_frame.h"

#include <stddef.h>
#include <string.h>

/* The host has written the shared part between BEGIN and this request, or the round has begun already. */
static int begin_round(ag_link *l, ag_exchange *x) {
    ag_round_request q = {0, 0, 0, 0.0f, 0.0f, l->incomplete};
    if (x->in_bytes != 12 && x->in_bytes != 20) {
        return AG_LINK_ERR_LENGTH;
    }
    q.number = ag_get32(x->in);
    q.sum = ag_get32(x->in + 4);
    q.options = ag_get32(x->in + 8);
    if (((q.options & AG_ROUND_MASKED) != 0) != (x->in_bytes == 20)) {
        return AG_LINK_ERR_LENGTH;
    }
    if (x->in_bytes == 20) {
        q.clip = ag_get_f32(x->in + 12);
        q.noise = ag_get_f32(x->in + 16);
    }
    if (l->beyond_shared || (l->in_buffers && (q.options & AG_ROUND_LOCAL_BUFFERS) != 0)) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    ag_checkpoint c = {0, l->count.steps, 0, 0, 0};
    const uint32_t before = l->round.number;
    const int status = ag_round_begin(&l->round, &q, &c);
    if (status == AG_ROUND_OK) {
        l->incomplete = false;
        l->in_buffers = false;
        l->start = AG_STORE_OK;
        l->count.steps = c.steps;
        l->count.saved += before != q.number;
        l->checkpoint = c.sequence;
        ag_put32(x->out, l->round.samples->train);
        ag_put32(x->out + 4, l->round.steps);
        ag_put32(x->out + 8, ag_round_elements(&l->round));
        ag_put32(x->out + 12, l->checkpoint);
        ag_put32(x->out + 16, l->count.steps);
        ag_put32(x->out + 20, l->round.note.identity);
        x->out_bytes = 24;
    }
    return status;
}

/* Samples do not leave the board: the last ones are not left where READ finds them. */
static void clear_samples(const ag_link *l) {
    memset(l->memory + l->model->input_offset, 0, l->model->input_bytes);
    memset(l->memory + l->model->output_offset, 0, l->model->output_bytes);
}

static int train_locally(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 24) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    const ag_round_work work = {ag_get32(x->in + 4),    ag_get16(x->in + 8),    ag_get16(x->in + 10),
                                ag_get_f32(x->in + 12), ag_get_f32(x->in + 16), ag_get32(x->in + 20)};
    const uint32_t before = l->round.steps;
    const int status = ag_round_train(&l->round, ag_get32(x->in), &work);
    clear_samples(l);
    l->count.steps += l->round.steps - before;
    l->count.trained += l->round.steps - before;
    l->count.rejected += status < 0 && status > AG_LINK_ERR_REQUEST;
    ag_put32(x->out, l->round.steps);
    ag_put32(x->out + 4, l->round.examples);
    ag_put_f32(x->out + 8, l->round.loss);
    ag_put32(x->out + 12, (uint32_t)l->round.spent);
    ag_put32(x->out + 16, (uint32_t)(l->round.spent >> 32));
    x->out_bytes = 20;
    return status;
}

static int delta(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 15 && x->in_bytes != 17) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    const uint32_t top = x->in_bytes == 17 ? ag_get16(x->in + 15) : 0;
    const ag_round_piece p = {ag_get32(x->in + 4), ag_get16(x->in + 8), x->in[10], ag_get32(x->in + 11), top};
    const uint32_t bytes = ag_round_delta_bytes(&p);
    if (bytes > AG_LINK_PAYLOAD) {
        return AG_LINK_ERR_RANGE;
    }
    const int status = ag_round_delta(&l->round, ag_get32(x->in), &p, x->out);
    x->out_bytes = status == AG_ROUND_OK ? bytes : 0;
    return status;
}

static int evaluate(ag_link *l, ag_exchange *x) {
    ag_round_evaluation e;
    if (x->in_bytes != 10) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    const int status =
        ag_round_evaluate(&l->round, ag_get32(x->in), ag_get32(x->in + 4), ag_get16(x->in + 8), &e);
    clear_samples(l);
    if (status == AG_ROUND_OK) {
        ag_put32(x->out, e.samples);
        ag_put32(x->out + 4, e.labels);
        ag_put32(x->out + 8, e.right);
        x->out_bytes = 12;
    }
    return status;
}

/* Reads the board's identity, or sets it once: it is saved with a checkpoint. */
static int identity(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t wanted = ag_get32(x->in), own = l->round.note.identity;
    int status = AG_LINK_OK;
    if (wanted != 0 && wanted != own) {
        l->round.note.identity = wanted;
        status = own != 0 ? AG_LINK_ERR_IDENTITY : ag_link_save(l);
    }
    if (status != AG_LINK_OK) {
        l->round.note.identity = own;
    }
    ag_put32(x->out, l->round.note.identity);
    x->out_bytes = 4;
    return status;
}

/* The flash of checkpoints: its slots, how often they were erased, and the bytes that a round programs. */
static int wear(const ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 0) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    if (!l->round.begun) {
        return AG_ROUND_ERR_NUMBER;
    }
    uint32_t erasures = 0;
    for (uint32_t slot = 0; slot < l->flash->slots; slot++) {
        erasures += ag_store_erased(l->flash, slot);
    }
    ag_put32(x->out, l->flash->slots);
    ag_put32(x->out + 4, l->flash->slot_bytes);
    ag_put32(x->out + 8, erasures);
    ag_put32(x->out + 12, ag_store_programmed(&l->round.start));
    x->out_bytes = 16;
    return AG_LINK_OK;
}

int ag_link_dispatch_round(ag_link *l, uint32_t request, ag_exchange *x) {
    switch (request) {
    case AG_LINK_ROUND:
        return begin_round(l, x);
    case AG_LINK_LOCAL:
        return train_locally(l, x);
    case AG_LINK_DELTA:
        return delta(l, x);
    case AG_LINK_EVALUATE:
        return evaluate(l, x);
    case AG_LINK_IDENTITY:
        return identity(l, x);
    case AG_LINK_WEAR:
        return wear(l, x);
    default:
        return AG_LINK_ERR_REQUEST;
    }
}
