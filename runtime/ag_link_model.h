/* A model as the generator describes it to the link and to rounds of federated training: where its arrays
 * are, and the functions that are called. */
#ifndef AG_LINK_MODEL_H
#define AG_LINK_MODEL_H

#include "ag_crc32.h"
#include "ag_io.h"
#include "ag_store.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One array of the inputs: its offset, and its bytes for n rows, fixed + n * row. */
typedef struct ag_link_array {
    uint32_t offset, fixed, row;
    bool is_target; /* not read by PREDICT */
    bool is_f32;    /* may be written as bytes */
} ag_link_array;

/* The part of the state that a round of federated training exchanges: parameters that train, and floats of
 * buffers, such as the statistics of a batch normalisation. */
typedef enum ag_shared_kind { AG_SHARED_F32 = 0, AG_SHARED_S8 = 1 } ag_shared_kind;

/* Elements of one kind that follow each other in the state, from byte `offset` of it on. */
typedef struct ag_shared {
    uint32_t offset, count;
    ag_shared_kind kind;
    bool is_buffer;
} ag_shared;

/* Bytes of the state. */
typedef struct ag_state_range {
    uint32_t offset, bytes;
} ag_state_range;

struct ag_link;
struct ag_exchange;

/* A model with `accumulate`, for synchronous training: ag_gradients.h. */
typedef struct ag_gradients {
    int (*accumulate)(void *memory, int32_t n, float *loss);
    int (*apply)(void *memory, float lr);
    const ag_state_range *exchanged; /* what `accumulate` changes, in the order of the state */
    uint32_t ranges;
    int (*dispatch)(struct ag_link *l, uint32_t request, struct ag_exchange *x); /* ag_gradients_dispatch */
} ag_gradients;

/* The target that has labels, and the classes that the output has scores of, [n, count, inner] with a label
 * for each [n, inner]. */
typedef struct ag_classes {
    uint32_t label, label_bytes; /* the index of the array, the bytes of an integer of it */
    uint32_t count, inner;       /* count: 0 without classes */
} ag_classes;

/* A model, as the generator describes it. Offsets are relative to `memory`, which the caller owns, aligned to
 * 4 bytes. */
typedef struct ag_link_model {
    const char *name;
    uint32_t graph_id, program, batch, memory_bytes;
    uint32_t state_offset, state_bytes;   /* parameters, then the optimizer's state; see `state` */
    uint32_t input_offset, input_bytes;   /* inputs, then targets, for a whole batch */
    uint32_t output_offset, output_bytes; /* what predict returns, for a whole batch */
    uint32_t output_row;                  /* its bytes per row; 0 where they do not depend on n */
    const ag_link_array *array;
    uint32_t arrays;
    float lr; /* until SET_LR changes it */
    uint32_t
        restore_after; /* consecutive rejected steps after which the last checkpoint is loaded; 0: never */
    int (*init)(void *memory, uint32_t seed);
    int (*train_step)(void *memory, int32_t n, float lr, float *loss);
    int (*predict)(void *memory, int32_t n);
    ag_save_fn *save;
    ag_load_fn *load, *load_any; /* a checkpoint of this program; of any with these states */
    const ag_part *state; /* where it is in several parts, which together have state_bytes; else NULL */
    uint32_t state_parts;
    const ag_shared *shared; /* in the order of the state */
    uint32_t shared_parts;
    const ag_gradients *gradients; /* NULL without `accumulate` */
    ag_classes classes;
} ag_link_model;

/* Where byte `offset` of the state is; `bytes` becomes how many of the bytes from there on are in the same
 * part, at most the value before. The offset is within the state. */
uint8_t *ag_state_at(const ag_link_model *m, uint8_t *memory, uint32_t offset, uint32_t *bytes);

/* A checksum of the bytes before, continued over bytes of the state. */
uint32_t ag_state_sum(const ag_link_model *m, uint8_t *memory, uint32_t sum, uint32_t offset, uint32_t bytes);

/* The bytes of n rows of an array. */
static inline uint32_t ag_array_bytes(const ag_link_array *a, uint32_t n) {
    return a->fixed + n * a->row;
}

/* Checksum of the first n rows of all inputs in the memory of a model, including the targets if `targets`. */
static inline uint32_t ag_input_sum(const ag_link_model *m, const uint8_t *memory, uint32_t n, bool targets) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < m->arrays; i++) {
        const ag_link_array *a = &m->array[i];
        if (targets || !a->is_target) {
            sum = ag_crc32(sum, memory + m->input_offset + a->offset, ag_array_bytes(a, n));
        }
    }
    return sum;
}

#ifdef __cplusplus
}
#endif
#endif
