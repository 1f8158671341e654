/* The request handlers of rounds: ROUND, LOCAL and DELTA. */
#include "ag_requests.h"

#include "ag_frame.h"

/* The host has written the shared part between BEGIN and this request, or the round has begun already. */
static int begin_round(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 12) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->beyond_shared) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    ag_checkpoint c = {0, l->count.steps, 0, 0, 0};
    const uint32_t number = ag_get32(x->in), before = l->round.number;
    const int status =
        ag_round_begin(&l->round, number, ag_get32(x->in + 4), ag_get32(x->in + 8), l->incomplete, &c);
    if (status == AG_ROUND_OK) {
        l->incomplete = false;
        l->start = AG_STORE_OK;
        l->count.steps = c.steps;
        l->count.saved += before != number;
        l->checkpoint = c.sequence;
        ag_put32(x->out, l->round.samples->train);
        ag_put32(x->out + 4, l->round.steps);
        ag_put32(x->out + 8, ag_round_elements(&l->round));
        ag_put32(x->out + 12, l->checkpoint);
        ag_put32(x->out + 16, l->count.steps);
        x->out_bytes = 20;
    }
    return status;
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
    l->count.steps += l->round.steps - before;
    l->count.trained += l->round.steps - before;
    l->count.rejected += status < 0 && status > AG_LINK_ERR_REQUEST;
    ag_put32(x->out, l->round.steps);
    ag_put32(x->out + 4, l->round.examples);
    ag_put_f32(x->out + 8, l->round.loss);
    x->out_bytes = 12;
    return status;
}

static int delta(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 15) {
        return AG_LINK_ERR_LENGTH;
    }
    if (l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    const uint32_t count = ag_get16(x->in + 8), encoding = x->in[10];
    const uint32_t bytes = encoding == AG_ROUND_F32 ? 4 * count : 4 + count;
    if (bytes > AG_LINK_PAYLOAD) {
        return AG_LINK_ERR_RANGE;
    }
    const int status = ag_round_delta(&l->round, ag_get32(x->in), ag_get32(x->in + 4), count, encoding,
                                      ag_get32(x->in + 11), x->out);
    x->out_bytes = status == AG_ROUND_OK ? bytes : 0;
    return status;
}

int ag_link_dispatch_round(ag_link *l, uint32_t request, ag_exchange *x) {
    switch (request) {
    case AG_LINK_ROUND:
        return begin_round(l, x);
    case AG_LINK_LOCAL:
        return train_locally(l, x);
    case AG_LINK_DELTA:
        return delta(l, x);
    default:
        return AG_LINK_ERR_REQUEST;
    }
}
