#include "ag_gradients.h"

#include "ag_frame.h"
#include "ag_requests.h"

/* The checksums of the exchanged part of the state, and of the rest. */
static void sum_state(const ag_link *l, uint32_t *exchanged, uint32_t *rest) {
    const ag_link_model *m = l->model;
    uint32_t at = 0;
    *exchanged = *rest = 0;
    for (uint32_t i = 0; i < m->gradients->ranges; i++) {
        const ag_state_range *range = &m->gradients->exchanged[i];
        *rest = ag_state_sum(m, l->memory, *rest, at, range->offset - at);
        *exchanged = ag_state_sum(m, l->memory, *exchanged, range->offset, range->bytes);
        at = range->offset + range->bytes;
    }
    *rest = ag_state_sum(m, l->memory, *rest, at, m->state_bytes - at);
}

/* Whether the state is the one that a request starts from. If so, writing it has ended. */
static int check_state(ag_link *l, uint32_t exchanged, uint32_t rest) {
    uint32_t own, others;
    sum_state(l, &own, &others);
    if (others != rest) {
        return AG_GRADIENTS_ERR_WEIGHTS;
    }
    if (own != exchanged) {
        return AG_GRADIENTS_ERR_SUMS;
    }
    l->incomplete = false;
    l->beyond_shared = false;
    l->in_buffers = false;
    l->start = AG_STORE_OK;
    return AG_LINK_OK;
}

/* Adds the gradients of the first n rows of the inputs in memory to the earlier gradients. */
static int accumulate(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 20) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t step = ag_get32(x->in), n = ag_get16(x->in + 4);
    if (step != l->count.steps) {
        return AG_LINK_ERR_STEP;
    }
    if (n < 1 || n > l->model->batch) {
        return AG_LINK_ERR_RANGE;
    }
    if (ag_input_sum(l->model, l->memory, n, true) != ag_get32(x->in + 8)) {
        return AG_LINK_ERR_SUM;
    }
    int status = check_state(l, ag_get32(x->in + 12), ag_get32(x->in + 16));
    if (status == AG_LINK_OK) {
        l->round.begun = false; /* its weights come from other steps */
        status = l->model->gradients->accumulate(l->memory, (int32_t)n, &l->loss);
        l->count.rejected += status != AG_LINK_OK;
    }
    if (status == AG_LINK_OK) {
        uint32_t exchanged, rest;
        sum_state(l, &exchanged, &rest);
        ag_put_f32(x->out, l->loss);
        ag_put32(x->out + 4, exchanged);
        x->out_bytes = 8;
    }
    return status;
}

/* One step of the optimizer with the sums in memory. */
static int apply(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 16) {
        return AG_LINK_ERR_LENGTH;
    }
    const float requested = ag_get_f32(x->in + 4), lr = requested != requested ? l->lr : requested;
    int status = lr - lr == 0.0f ? AG_LINK_OK : AG_LINK_ERR_RANGE;
    if (ag_get32(x->in) != l->count.steps) {
        status = AG_LINK_ERR_STEP;
    }
    if (status == AG_LINK_OK) {
        status = check_state(l, ag_get32(x->in + 8), ag_get32(x->in + 12));
    }
    if (status == AG_LINK_OK) {
        l->round.begun = false;
        status = l->model->gradients->apply(l->memory, lr);
        l->count.steps += status == AG_LINK_OK;
        l->count.trained += status == AG_LINK_OK;
        l->count.rejected += status != AG_LINK_OK;
    }
    uint32_t exchanged, rest;
    sum_state(l, &exchanged, &rest);
    ag_put32(x->out, l->count.steps);
    ag_put32(x->out + 4, rest);
    x->out_bytes = 8;
    return status;
}

int ag_gradients_dispatch(ag_link *l, uint32_t request, ag_exchange *x) {
    switch (request) {
    case AG_LINK_ACCUMULATE:
        return accumulate(l, x);
    case AG_LINK_APPLY:
        return apply(l, x);
    default:
        return AG_LINK_ERR_REQUEST;
    }
}
