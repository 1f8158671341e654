/* A board of the link in a shared library, for rounds of federated training: a generated model, flash in RAM
 * whose power can be cut, samples in memory, and a line that the test drives. */
#include "ag_flash_ram.h"
#include "ag_link.h"

#include <stdlib.h>
#include <string.h>

enum { REPLIES = 1 << 16 };

typedef struct board {
    ag_link link;
    ag_flash_ram ram;
    ag_flash flash;
    ag_samples samples;
    uint8_t *memory;
    const uint8_t *set;
    uint32_t set_bytes, out_bytes;
    uint8_t out[REPLIES];
} board;

board *board_new(const uint8_t *set, uint32_t set_bytes, uint32_t slots, uint32_t slot_bytes);
void board_entropy(const uint8_t *seed);
int board_start(board *b);
void board_cut(board *b, uint32_t after, uint32_t torn);
uint32_t board_operations(const board *b);
uint32_t board_receive(board *b, const uint8_t *data, uint32_t bytes);
const uint8_t *board_replies(board *b);
uint8_t *board_state(board *b);
uint32_t board_draws(void);
float __real_ag_noise(const uint32_t key[8], uint32_t index);
float __wrap_ag_noise(const uint32_t key[8], uint32_t index);
void board_delete(board *b);

void ag_between_parts(void) {
}

static int read_set(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    const board *b = (const board *)ctx;
    if (offset > b->set_bytes || bytes > b->set_bytes - offset) {
        return -1;
    }
    memcpy(data, b->set + offset, bytes);
    return 0;
}

static const uint8_t *entropy; /* 32 bytes, or NULL */

static int draw(void *data, uint32_t bytes) {
    if (entropy == NULL || bytes > 32) {
        return -1;
    }
    memcpy(data, entropy, bytes);
    return 0;
}

/* Each call takes 100 cycles; the counter begins just before it wraps. */
static uint32_t count_cycles(void) {
    static uint32_t cycles = 0xffffff00u;
    return cycles += 100;
}

static void keep(void *ctx, const uint8_t *data, uint32_t bytes) {
    board *b = (board *)ctx;
    if (bytes <= REPLIES - b->out_bytes) {
        memcpy(b->out + b->out_bytes, data, bytes);
        b->out_bytes += bytes;
    }
}

/* The random bytes of all boards, which stay with the caller. */
void board_entropy(const uint8_t *seed) {
    entropy = seed;
}

/* `set` stays with the caller; no flash where there are no slots. */
board *board_new(const uint8_t *set, uint32_t set_bytes, uint32_t slots, uint32_t slot_bytes) {
    board *b = (board *)calloc(1, sizeof *b);
    b->memory = (uint8_t *)malloc(ag_linked_model.memory_bytes);
    b->set = set;
    b->set_bytes = set_bytes;
    b->ram.word = (uint32_t *)malloc((size_t)slots * slot_bytes + 1);
    b->ram.slots = slots;
    b->ram.slot_bytes = slot_bytes;
    memset(b->ram.word, 0xff, (size_t)slots * slot_bytes);
    b->flash = ag_flash_ram_open(&b->ram);
    return b;
}

/* The start of the program: RAM has lost its contents. Returns the status of loading a checkpoint. */
int board_start(board *b) {
    memset(b->memory, 0xa5, ag_linked_model.memory_bytes);
    b->out_bytes = 0;
    ag_link_start(&b->link, &ag_linked_model, b->memory, b->ram.slots > 0 ? &b->flash : NULL, keep, b);
    b->link.window = 1024;
    b->link.round.samples = ag_samples_open_source(&b->samples, read_set, b) == 0 ? &b->samples : NULL;
    b->link.round.cycles = count_cycles;
    b->link.round.entropy = draw;
    return ag_link_restore(&b->link);
}

/* Power fails after so many operations of the flash from now on; 0: never. */
void board_cut(board *b, uint32_t after, uint32_t torn) {
    b->ram.operations = 0;
    b->ram.cut_after = after;
    b->ram.torn = torn;
}

uint32_t board_operations(const board *b) {
    return b->ram.operations;
}

/* Returns how many bytes of replies there are. */
uint32_t board_receive(board *b, const uint8_t *data, uint32_t bytes) {
    b->out_bytes = 0;
    ag_link_receive(&b->link, data, bytes);
    return b->out_bytes;
}

const uint8_t *board_replies(board *b) {
    return b->out;
}

/* Of a model whose state is in one part. */
uint8_t *board_state(board *b) {
    return b->memory + ag_linked_model.state_offset;
}

static uint32_t draws;

/* The linker calls this for ag_noise (round_board.py). */
float __wrap_ag_noise(const uint32_t key[8], uint32_t index) {
    draws++;
    return __real_ag_noise(key, index);
}

/* Calls of ag_noise since the last call. */
uint32_t board_draws(void) {
    const uint32_t count = draws;
    draws = 0;
    return count;
}

void board_delete(board *b) {
    free(b->ram.word);
    free(b->memory);
    free(b);
}
