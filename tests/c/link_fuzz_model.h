/* The model of link_fuzz.c: its state is a seed, a hash of all data that it was trained on, a number of
 * steps, and the hash again. Rounds exchange the first word, a float of a buffer, and the last, four signed
 * bytes. Synchronous training exchanges the first word, which it adds data to until a step. */
#ifndef LINK_FUZZ_MODEL_H
#define LINK_FUZZ_MODEL_H

#include "ag_checkpoint.h"
#include "ag_crc32.h"
#include "ag_gradients.h"
#include "ag_link.h"

#include <stddef.h>
#include <string.h>

enum { ROWS = 3, WIDTH = 13, CLASSES = 5, RECORDS = 4 };
#define GRAPH 0x12345678u
#define PROGRAM 0x9abcdef0u

typedef struct memory {
    uint32_t before; /* guard word */
    uint32_t state[4];
    uint32_t after;
    float x[ROWS][WIDTH];
    uint8_t label[ROWS + 1];
    uint32_t beyond;
    float scores[ROWS][CLASSES];
    uint32_t end;
} memory;

static uint32_t hash_of(uint32_t hash, const memory *m, int32_t n, float lr) {
    hash = ag_crc32(hash, m->x, (uint32_t)n * sizeof m->x[0]);
    hash = ag_crc32(hash, m->label, (uint32_t)n);
    hash = ag_crc32(hash, &lr, sizeof lr);
    return ag_crc32(hash, &n, sizeof n);
}

static int init(void *at, uint32_t seed) {
    memory *m = (memory *)at;
    memset(m->state, 0, sizeof m->state);
    m->state[0] = seed;
    return 0;
}

static int train_step(void *at, int32_t n, float lr, float *loss) {
    memory *m = (memory *)at;
    for (int32_t i = 0; i < n; i++) {
        if (m->label[i] >= CLASSES) {
            return -3;
        }
    }
    m->state[1] = hash_of(m->state[1], m, n, lr);
    m->state[2]++;
    m->state[3] = m->state[1];
    *loss = (float)(m->state[1] & 1023u);
    return 0;
}

static int accumulate(void *at, int32_t n, float *loss) {
    memory *m = (memory *)at;
    m->state[0] = hash_of(m->state[0], m, n, 0.0f);
    *loss = (float)(m->state[0] & 1023u);
    return 0;
}

static int apply(void *at, float lr) {
    memory *m = (memory *)at;
    m->state[1] = ag_crc32(m->state[0] ^ m->state[1], &lr, sizeof lr);
    m->state[0] = 0;
    m->state[2]++;
    return 0;
}

static int predict(void *at, int32_t n) {
    memory *m = (memory *)at;
    for (int32_t i = 0; i < n; i++) {
        for (int32_t c = 0; c < CLASSES; c++) {
            m->scores[i][c] = m->x[i][c] + (float)c;
        }
    }
    return 0;
}

static int save(const void *at, ag_write_fn *write, void *ctx) {
    const memory *m = (const memory *)at;
    return ag_checkpoint_save(m->state, sizeof m->state, GRAPH, PROGRAM, write, ctx);
}

static int load(void *at, ag_read_fn *read, void *ctx) {
    memory *m = (memory *)at;
    return ag_checkpoint_load(m->state, sizeof m->state, GRAPH, PROGRAM, read, ctx);
}

static const ag_link_array arrays[] = {
    {0, 0, WIDTH * sizeof(float), false, true},
    {offsetof(memory, label) - offsetof(memory, x), 0, 1, true, false},
};
static const ag_shared shared[] = {{0, 1, AG_SHARED_F32, true}, {12, 4, AG_SHARED_S8, false}};
static const ag_state_range exchanged[] = {{0, 4}};
static const ag_gradients gradients = {accumulate, apply, exchanged, 1, ag_gradients_dispatch};
static const ag_link_model model = {
    "hash",
    GRAPH,
    PROGRAM,
    ROWS,
    sizeof(memory),
    offsetof(memory, state),
    sizeof(uint32_t[4]),
    offsetof(memory, x),
    offsetof(memory, beyond) - offsetof(memory, x),
    offsetof(memory, scores),
    sizeof(float[ROWS][CLASSES]),
    sizeof(float[CLASSES]),
    arrays,
    2,
    0.5f,
    0,
    init,
    train_step,
    predict,
    save,
    load,
    load,
    NULL,
    0,
    shared,
    2,
    &gradients,
    {1, 1, CLASSES, 1},
};

/* The samples of the board: the input may have any bytes; labels are classes. */
static uint8_t set[48 + RECORDS * (WIDTH + 1)];

static int read_set(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    (void)ctx;
    if (offset > sizeof set || bytes > sizeof set - offset) {
        return -1;
    }
    memcpy(data, set + offset, bytes);
    return 0;
}

static int open_set(ag_samples *s) {
    const uint32_t header[11] = {0x31534741u, 1, 48, WIDTH + 1, WIDTH, 1, RECORDS, 0, 1, 0, 0};
    const uint32_t sum = ag_crc32(0, header, sizeof header);
    memcpy(set, header, sizeof header);
    memcpy(set + sizeof header, &sum, sizeof sum);
    for (uint32_t i = 0; i < RECORDS * (WIDTH + 1); i++) {
        set[48 + i] = (uint8_t)(i % CLASSES);
    }
    return ag_samples_open_source(s, read_set, NULL);
}

#endif
