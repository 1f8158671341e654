/* The request handlers of the link: sessions, training, predictions and checkpoints. */
#include "ag_requests.h"

#include "ag_crc32.h"
#include "ag_frame.h"

#include <string.h>

int ag_link_hello(ag_link *l, ag_exchange *x) {
    const ag_link_model *m = l->model;
    const uint32_t flags =
        (l->flash != NULL ? 1u : 0u) | (l->incomplete ? 2u : 0u) | (uint32_t)-l->start << 8;
    const size_t name = strlen(m->name);
    x->out[0] = AG_LINK_VERSION;
    x->out[1] = AG_LINK_PAYLOAD;
    ag_put16(x->out + 2, flags);
    ag_put32(x->out + 4, m->graph_id);
    ag_put32(x->out + 8, m->batch);
    ag_put32(x->out + 12, m->state_bytes);
    ag_put32(x->out + 16, m->input_bytes);
    ag_put32(x->out + 20, m->output_bytes);
    ag_put32(x->out + 24, l->count.steps);
    ag_put32(x->out + 28, l->checkpoint);
    memset(x->out + 32, 0, AG_LINK_NAME);
    memcpy(x->out + 32, m->name, name < AG_LINK_NAME ? name : AG_LINK_NAME);
    ag_put32(x->out + 32 + AG_LINK_NAME, l->window);
    ag_put32(x->out + 36 + AG_LINK_NAME, m->program);
    ag_put32(x->out + 40 + AG_LINK_NAME, l->round.number);
    if (x->in_bytes == 4 && x->in[0] == AG_LINK_VERSION) {
        x->out_bytes = AG_LINK_GREETING;
        return AG_LINK_OK;
    }
    x->out_bytes = 32 + AG_LINK_NAME; /* as long as in version 1, whose hosts read no longer greeting */
    return x->in_bytes != 4 ? AG_LINK_ERR_LENGTH : AG_LINK_ERR_VERSION;
}

static int check_rows(const ag_link *l, uint32_t n, uint32_t sum, bool targets) {
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    if (n < 1 || n > l->model->batch) {
        return AG_LINK_ERR_RANGE;
    }
    return ag_input_sum(l->model, l->memory, n, targets) == sum ? AG_LINK_OK : AG_LINK_ERR_SUM;
}

/* The whole state was replaced, by the state of `round`; 0: of no round. */
static void replaced(ag_link *l, uint32_t round) {
    l->incomplete = false;
    l->beyond_shared = false;
    l->in_buffers = false;
    l->start = AG_STORE_OK;
    ag_round_leave(&l->round, round);
}

/* Loads the newest checkpoint, of this program or of any with its states; on failure nothing changes. */
static int load(ag_link *l, bool any) {
    if (l->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    ag_checkpoint c = {l->model->graph_id, 0, 0, l->model->program, 0};
    const int status = any ? ag_store_load_any(l->flash, &c, l->model->load_any, l->memory)
                           : ag_store_load(l->flash, &c, l->model->load, l->memory);
    if (status == AG_STORE_OK) {
        l->checkpoint = c.sequence;
        l->count.steps = c.steps;
        replaced(l, c.program == l->model->program ? c.round : 0);
    }
    return status;
}

static int train(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 16) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t step = ag_get32(x->in), n = ag_get16(x->in + 4), repeat = ag_get16(x->in + 6);
    const float requested = ag_get_f32(x->in + 8), lr = requested != requested ? l->lr : requested;
    ag_put_f32(x->out, l->loss);
    ag_put32(x->out + 4, l->count.steps);
    x->out_bytes = 8;
    if (step != l->count.steps) {
        return AG_LINK_ERR_STEP;
    }
    int status = check_rows(l, n, ag_get32(x->in + 12), true);
    for (uint32_t i = 0; i < repeat && status == AG_LINK_OK; i++) {
        status = l->model->train_step(l->memory, (int32_t)n, lr, &l->loss);
        if (status == AG_LINK_OK) {
            l->count.steps++;
            l->count.trained++;
            l->round.begun = false; /* its weights come from other steps */
        } else {
            l->count.rejected++;
        }
        if (ag_rejected_too_often(&l->rejections, status)) {
            l->count.restored += load(l, false) == AG_STORE_OK;
        }
    }
    ag_put_f32(x->out, l->loss);
    ag_put32(x->out + 4, l->count.steps);
    return status;
}

static int predict(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 8) {
        return AG_LINK_ERR_LENGTH;
    }
    const ag_link_model *m = l->model;
    const uint32_t n = ag_get16(x->in);
    int status = check_rows(l, n, ag_get32(x->in + 4), false);
    if (status == AG_LINK_OK) {
        status = m->predict(l->memory, (int32_t)n);
        l->count.predicted += status == AG_LINK_OK;
    }
    if (status == AG_LINK_OK) { /* the checksum, and as many outputs as fit the payload */
        const uint32_t bytes = m->output_row == 0 ? m->output_bytes : n * m->output_row;
        const uint32_t room = AG_LINK_PAYLOAD - 4, sent = bytes < room ? bytes : room;
        ag_put32(x->out, ag_crc32(0, l->memory + m->output_offset, bytes));
        memcpy(x->out + 4, l->memory + m->output_offset, sent);
        x->out_bytes = 4 + sent;
    }
    return status;
}

static int set_lr(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const float lr = ag_get_f32(x->in);
    if (!(lr - lr == 0.0f)) { /* not finite */
        return AG_LINK_ERR_RANGE;
    }
    l->lr = lr;
    return AG_LINK_OK;
}

static int init(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const int status = l->model->init(l->memory, ag_get32(x->in));
    if (status == AG_LINK_OK) {
        replaced(l, 0);
        l->count.steps = 0;
        l->loss = 0.0f;
        l->lr = l->model->lr;
    }
    return status;
}

static int begin(ag_link *l, const ag_exchange *x) {
    if (x->in_bytes != 0) {
        return AG_LINK_ERR_LENGTH;
    }
    l->incomplete = true;
    return AG_LINK_OK;
}

static int end(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 8) {
        return AG_LINK_ERR_LENGTH;
    }
    if (!l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    if (ag_state_sum(l->model, l->memory, 0, 0, l->model->state_bytes) != ag_get32(x->in)) {
        return AG_LINK_ERR_SUM;
    }
    replaced(l, 0);
    l->count.steps = ag_get32(x->in + 4);
    return AG_LINK_OK;
}

int ag_link_save(ag_link *l) {
    if (l->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    ag_note note;
    ag_checkpoint c = {l->model->graph_id, l->count.steps, 0, l->model->program, 0};
    const int status =
        ag_store_save_noted(l->flash, &c, l->model->save, l->memory, ag_round_identity(&l->round, &note));
    if (status == AG_STORE_OK) {
        l->checkpoint = c.sequence;
        l->count.saved++;
        ag_round_leave(&l->round, 0); /* the start of the round is no longer the newest checkpoint */
    }
    return status;
}

static int save(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 0) {
        return AG_LINK_ERR_LENGTH;
    }
    const int status = ag_link_save(l);
    ag_put32(x->out, l->checkpoint);
    x->out_bytes = status == AG_STORE_OK ? 4 : 0;
    return status;
}

int ag_link_load(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t which = ag_get32(x->in);
    if (which > AG_LINK_LOAD_ANY) {
        return AG_LINK_ERR_RANGE;
    }
    const int status = load(l, which == AG_LINK_LOAD_ANY);
    ag_put32(x->out, status == AG_STORE_OK ? l->checkpoint : 0);
    ag_put32(x->out + 4, l->count.steps);
    x->out_bytes = 8;
    return status;
}

int ag_link_dispatch(ag_link *l, uint32_t request, ag_exchange *x) {
    switch (request) {
    case AG_LINK_READ:
    case AG_LINK_WRITE:
    case AG_LINK_SUM:
    case AG_LINK_FETCH:
        return ag_link_dispatch_object(l, request, x);
    case AG_LINK_TRAIN:
        return train(l, x);
    case AG_LINK_PREDICT:
        return predict(l, x);
    case AG_LINK_SET_LR:
        return set_lr(l, x);
    case AG_LINK_INIT:
        return init(l, x);
    case AG_LINK_BEGIN:
        return begin(l, x);
    case AG_LINK_END:
        return end(l, x);
    case AG_LINK_SAVE:
        return save(l, x);
    case AG_LINK_LOAD:
        return ag_link_load(l, x);
    case AG_LINK_ACCUMULATE:
    case AG_LINK_APPLY:
        return l->model->gradients == NULL ? AG_LINK_ERR_REQUEST
                                           : l->model->gradients->dispatch(l, request, x);
    default:
        return ag_link_dispatch_round(l, request, x);
    }
}
