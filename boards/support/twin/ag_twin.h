/* A round of federated training as one function, for a process that holds many boards of one model: they
 * share a memory, one after the other. The flash of a board is memory here. The steps and their
 * bits are the same as with ag_round.h. */
#ifndef AG_TWIN_H
#define AG_TWIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ag_twin_work {
    uint32_t round, steps, n; /* n: samples of a step; 0: the model's batch */
    float lr, mu;
    uint32_t seed;
    uint32_t local_buffers; /* 1: buffers are not in the difference */
    uint32_t encoding;      /* AG_ROUND_F32 or AG_ROUND_S8, in pieces of `piece` elements */
    uint32_t piece, delta_seed;
    uint32_t top, last_top; /* of a piece only the largest, and so many of the last piece; 0: all */
    uint32_t evaluates;     /* 1: compares labels before it trains */
    float clip, noise;      /* of the difference; 0: none */
    uint32_t noise_seed[8];
} ag_twin_work;

typedef struct ag_twin_done {
    uint32_t samples, steps, examples; /* samples: that the board has */
    float loss;                        /* the sum of the losses of the steps */
    uint32_t tested, labels, right;    /* ag_round_evaluation */
} ag_twin_done;

/* The bytes of a model's memory, in which its state begins at ag_twin_state(memory). */
uint32_t ag_twin_memory_bytes(void);
void *ag_twin_state(void *memory);

/* The state of a board that has not trained. */
int ag_twin_init(void *memory, uint32_t seed);

/* Copies the state at `start` into `memory`, and trains it on a sample set in memory. `delta` receives the
 * difference as ag_round_delta writes it, piece after piece. Returns a status of ag_round.h. */
int ag_twin_train(void *memory, const void *start, const void *set, uint32_t set_bytes,
                  const ag_twin_work *work, ag_twin_done *done, uint8_t *delta);

#ifdef __cplusplus
}
#endif
#endif
