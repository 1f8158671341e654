/* Synchronous training over the link, for models with `accumulate`: docs/link.md. The board adds up the
 * gradients of its share of a batch; the host reads the sums, writes the sums of all boards, and requests
 * the step. Every request names the step and the checksum of the state that it starts from, so that a step is
 * made once, and from the same weights on all boards. */
#ifndef AG_GRADIENTS_H
#define AG_GRADIENTS_H

#include "ag_link.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AG_GRADIENTS_ERR_SUMS = -51,    /* the request names another exchanged part of the state */
    AG_GRADIENTS_ERR_WEIGHTS = -52, /* the request names another rest of the state */
};

/* Answers ACCUMULATE and APPLY. Referred to by the generated NAME_link.c of such a model only, so that other
 * firmware does not contain it. */
int ag_gradients_dispatch(ag_link *l, uint32_t request, struct ag_exchange *x);

#ifdef __cplusplus
}
#endif
#endif
