/* Rounds of federated training on one board, for any model of the link and without the link: docs/link.md.
 *
 * A round begins with the weights that a server has sent, W0: they are in the memory of the model, and are
 * saved as a checkpoint with the round's number. Then the board trains on its own samples, and the server
 * reads the difference to W0. After a power cut the board has W0 again, and no local step: a round is
 * repeated from its start or continued, so that nothing is applied twice. */
#ifndef AG_ROUND_H
#define AG_ROUND_H

#include "ag_link_model.h"
#include "ag_samples.h"
#include "ag_store.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -34, -38 and -39 are the link's; -1 to -15 are the model's, -64 and below the store's. */
enum {
    AG_ROUND_OK = 0,
    AG_ROUND_ERR_RANGE = -34,   /* a number that is out of range */
    AG_ROUND_ERR_STEP = -38,    /* another number of local steps than the board has made */
    AG_ROUND_ERR_SUM = -39,     /* the weights do not match the checksum in the request */
    AG_ROUND_ERR_NUMBER = -43,  /* another round than the board's, or a lower one */
    AG_ROUND_ERR_START = -44,   /* the round began with other weights */
    AG_ROUND_ERR_SAMPLES = -45, /* no samples, or other records than the model's inputs */
    AG_ROUND_ERR_FINITE = -46,  /* a difference of weights is not finite */
};

enum { AG_ROUND_LOCAL_BUFFERS = 1 }; /* an option: buffers stay on the board */

enum { AG_ROUND_F32 = 0, AG_ROUND_S8 = 1 }; /* encodings of a difference */

typedef struct ag_round {
    const ag_link_model *model;
    uint8_t *memory;
    const ag_flash *flash; /* NULL without one */
    ag_samples *samples;   /* NULL without any */
    uint32_t number;       /* of the state, 0 outside of rounds */
    bool begun;            /* the state is W0 of the round after `steps` local steps */
    bool local_buffers;
    uint32_t steps, examples; /* local: since the start of the round */
    float loss;               /* the sum of the losses of these steps */
    ag_record start;          /* the checkpoint of W0 */
} ag_round;

/* A request to train. */
typedef struct ag_round_work {
    uint32_t first, steps; /* local steps made before, and now */
    uint32_t n;            /* samples of a step; 0: the model's batch, or all samples if there are fewer */
    float lr, mu;
    uint32_t seed;
} ag_round_work;

void ag_round_init(ag_round *r, const ag_link_model *model, void *memory, const ag_flash *flash);

/* Outside of rounds, or in `number` before its start is loaded again: another state was loaded or trained. */
void ag_round_leave(ag_round *r, uint32_t number);

/* Begins round `number` with the weights in memory, whose shared part has the checksum `sum`, or continues it
 * where it has begun with the same. `written`: the weights in memory were replaced since; then the start is
 * loaded. c->steps: the training steps of the state before; c->steps and c->sequence are filled in. */
int ag_round_begin(ag_round *r, uint32_t number, uint32_t sum, uint32_t options, bool written,
                   ag_checkpoint *c);

/* Begins a round with the state in memory, which the caller has saved as `start`. */
int ag_round_enter(ag_round *r, uint32_t number, bool local_buffers, const ag_record *start);

/* Makes local steps on the board's samples, in an order that depends on seed and epoch only. Returns the
 * status of the first step that the model rejects, which is not counted. With mu > 0, after each step w -= lr
 * * mu * (w - w0). */
int ag_round_train(ag_round *r, uint32_t number, const ag_round_work *work);

/* The differences w - w0 of `count` elements of the shared part from `first` on, in `out`: floats; or a
 * float, the scale, and signed bytes, rounded up or down at random: which depends on seed, round and element
 * only. Changes nothing. */
int ag_round_delta(const ag_round *r, uint32_t number, uint32_t first, uint32_t count, uint32_t encoding,
                   uint32_t seed, uint8_t *out);

/* The number of elements of the shared part. */
uint32_t ag_round_elements(const ag_round *r);

/* Whether bytes of the state are in the shared part. */
bool ag_round_shares(const ag_link_model *model, uint32_t offset, uint32_t bytes);

/* The sample at position `i` of an epoch over n samples: each once in an epoch. */
uint32_t ag_round_sample(uint32_t i, uint32_t n, uint32_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
