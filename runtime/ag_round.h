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
    AG_ROUND_ERR_ENTROPY = -47, /* noise without a source of random numbers, or with one that fails */
    AG_ROUND_ERR_OPTIONS = -48, /* the round began with other options, clipping or noise */
    AG_ROUND_ERR_CLASSES = -50, /* an evaluation of a model without classes */
};

/* Options: buffers stay on the board; differences are clipped, and get noise. */
enum { AG_ROUND_LOCAL_BUFFERS = 1, AG_ROUND_MASKED = 2 };

enum { AG_ROUND_F32 = 0, AG_ROUND_S8 = 1 }; /* encodings of a difference */

/* Random bytes that nobody else knows: 0, or -1 where there is no source of them, or where it fails. */
typedef int ag_entropy_fn(void *data, uint32_t bytes);

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
    uint64_t spent;           /* what r->cycles counted in them */
    ag_record start;          /* the checkpoint of W0 */
    ag_note note;             /* the board's identity; the round's options, clipping and noise */
    float factor;             /* that clips the difference */
    uint32_t key[8];          /* of the noise of this difference */
    bool is_measured;         /* factor, and with noise the key, are known for the weights in memory */
    uint32_t (*cycles)(void); /* cycles or instructions, modulo 2^32; NULL: no counter */
    ag_entropy_fn *entropy;   /* NULL without a source */
} ag_round;

/* A request to begin a round. `sum`: of the shared part in memory. `written`: the weights in memory were
 * replaced since the last one. With AG_ROUND_MASKED the difference is clipped to the L2 norm `clip`, and each
 * element gets normal noise of standard deviation noise * clip; otherwise both are 0. */
typedef struct ag_round_request {
    uint32_t number, sum, options;
    float clip, noise;
    bool written;
} ag_round_request;

/* A request to train. */
typedef struct ag_round_work {
    uint32_t first, steps; /* local steps made before, and now */
    uint32_t n;            /* samples of a step; 0: the model's batch, or all samples if there are fewer */
    float lr, mu;
    uint32_t seed;
} ag_round_work;

void ag_round_init(ag_round *r, const ag_link_model *model, void *memory, const ag_flash *flash);

/* Call it after the state was replaced: the board is outside of rounds if `number` is 0, otherwise in this
 * round, whose start is then loaded again. */
void ag_round_leave(ag_round *r, uint32_t number);

/* Begins a round with the weights in memory, or continues it where it has begun with the same; if these were
 * written since, the start is loaded. c->steps: the training steps of the state before; c->steps and
 * c->sequence are filled in. */
int ag_round_begin(ag_round *r, const ag_round_request *request, ag_checkpoint *c);

/* Begins a round with the state in memory, which the caller has saved as `start`. `note`: its options,
 * and how differences are masked. */
int ag_round_enter(ag_round *r, uint32_t number, const ag_record *start, const ag_note *note);

/* The board's identity, which is saved with its checkpoints outside of rounds. NULL where it has none. */
const ag_note *ag_round_identity(const ag_round *r, ag_note *note);

/* Makes local steps on the board's samples, in an order that depends on seed and epoch only. Returns the
 * status of the first step that the model rejects, which is not counted. With mu > 0, after each step w -= lr
 * * mu * (w - w0). */
int ag_round_train(ag_round *r, uint32_t number, const ag_round_work *work);

/* A request for the differences w - w0 of `count` elements of the shared part from `first` on. `top`: only so
 * many of them, the largest; 0: all. */
typedef struct ag_round_piece {
    uint32_t first, count, encoding, seed, top;
} ag_round_piece;

/* The bytes of a reply. */
uint32_t ag_round_delta_bytes(const ag_round_piece *p);

/* Writes the differences to `out`: floats; or a float, the scale, and signed bytes, rounded up or down at
 * random by a number that depends on seed, round and element only. With `top` the places of the elements come
 * first, each 16 bits relative to `first`, in ascending order. A repeated request has the same reply, noise
 * included; the weights stay as they are. */
int ag_round_delta(ag_round *r, uint32_t number, const ag_round_piece *p, uint8_t *out);

/* How the weights in memory classify the board's own samples: those to test on, or those to train on if there
 * are no others. */
typedef struct ag_round_evaluation {
    uint32_t samples;       /* how many there are */
    uint32_t labels, right; /* of those that were compared */
} ag_round_evaluation;

/* Compares `count` samples from `first` on. */
int ag_round_evaluate(ag_round *r, uint32_t number, uint32_t first, uint32_t count, ag_round_evaluation *e);

/* The number of elements of the shared part. */
uint32_t ag_round_elements(const ag_round *r);

/* Whether bytes of the state are in the shared part; buffers in it may be local. */
bool ag_round_shares(const ag_link_model *model, bool local_buffers, uint32_t offset, uint32_t bytes);

/* The sample at position `i` of an epoch over n samples: each once in an epoch. */
uint32_t ag_round_sample(uint32_t i, uint32_t n, uint32_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
