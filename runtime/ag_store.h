/* Power-fail-safe checkpoints in flash; docs/store.md specifies the format.
 *
 * The region is divided into slots, each an erase unit. Records are appended to a slot until it is full; then
 * the next slot is erased and used (wear levelling), but never the one that holds the newest valid record. A
 * record is valid only when header and body match the checksums in the header. */
#ifndef AG_STORE_H
#define AG_STORE_H

#include "ag_io.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AG_STORE_OK = 0,
    AG_STORE_ERR_NONE = -64,     /* no checkpoint */
    AG_STORE_ERR_GRAPH = -65,    /* only checkpoints of other models */
    AG_STORE_ERR_FORMAT = -66,   /* only checkpoints of a later format, or they occupy all slots */
    AG_STORE_ERR_FULL = -67,     /* a checkpoint is larger than a slot, or there are fewer than two slots */
    AG_STORE_ERR_WORN = -68,     /* what was programmed does not read back, in any usable slot */
    AG_STORE_ERR_FLASH = -69,    /* the flash cannot be read */
    AG_STORE_ERR_SAVE = -70,     /* the save callback failed, or wrote different bytes the second time */
    AG_STORE_ERR_LOAD = -71,     /* the load callback rejected the body */
    AG_STORE_ERR_NO_FLASH = -72, /* this board has no flash for checkpoints */
    AG_STORE_ERR_SIZE = -73,     /* the file in place of flash has another size */
    AG_STORE_ERR_PROGRAM = -74,  /* only checkpoints of other programs: the same states, other operations */
    AG_STORE_ERR_EARLIER = -75,  /* only checkpoints of an earlier format */
    AG_STORE_ERR_DAMAGED = -76,  /* only checkpoints that are damaged, or whose write was interrupted */
};

/* Flash for checkpoints. Addresses are relative to the region. All functions return 0, or a negative value on
 * failure. program: `address` and `bytes` are multiples of 4, and the words are erased (0xffffffff). erase:
 * one slot; `address` is its start. Afterwards its bytes read 0xff. */
typedef struct ag_flash {
    ag_read_fn *read;
    ag_write_fn *program;
    int (*erase)(void *ctx, uint32_t address);
    void *ctx;
    uint32_t slots, slot_bytes; /* at least two slots; slot_bytes is a multiple of 4 */
} ag_flash;

/* Metadata of a record. */
typedef struct ag_checkpoint {
    uint32_t graph_id;
    uint32_t steps;    /* training steps of the state */
    uint32_t sequence; /* counts the saves of the region, from 1 */
    uint32_t program;  /* <M>_PROGRAM */
    uint32_t round;    /* of federated training; 0 outside it */
} ag_checkpoint;

/* Writes the whole body through the write callback, in order and in multiples of 4 bytes. Called twice; must
 * write the same bytes both times. It calls <m>_save, and a load function <m>_load. */
typedef int ag_save_fn(const void *memory, ag_write_fn *write, void *ctx);
typedef int ag_load_fn(void *memory, ag_read_fn *read, void *ctx);

/* Appends a checkpoint; `c` provides all but the sequence, which it receives. On failure the newest valid
 * checkpoint remains. */
int ag_store_save(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory);

/* Passes the newest valid checkpoint with c->graph_id and c->program to `load`, then fills in `c`. */
int ag_store_load(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory);

/* The same, of any program with these states: `load` calls <m>_load_any. */
int ag_store_load_any(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory);

/* A checkpoint in the flash whose body is read in pieces. */
typedef struct ag_record {
    const ag_flash *flash;
    uint32_t address, bytes; /* of the body: the bytes of the save function, and the note after them */
} ag_record;

/* A board of a fleet saves this note after the body: its identity, 0 before it has one; and, where a round
 * begins, the options of the round, how differences are clipped and the seed of their noise. */
typedef struct ag_note {
    uint32_t identity, options;
    float clip, noise;
    uint32_t seed[8];
} ag_note;

/* ag_store_save of a body with a note; NULL: without. */
int ag_store_save_noted(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory,
                        const ag_note *note);

/* Reads the note of a record; false where it has none. */
bool ag_store_note(const ag_record *record, ag_note *note);

/* The note of the newest valid record that has one, of any model and program; false without one. */
bool ag_store_newest_note(const ag_flash *flash, ag_note *note);

/* Opens the newest valid checkpoint with c->graph_id and c->program, which must be of c->round: otherwise
 * AG_STORE_ERR_NONE. Fills in `c`. It is readable until the next save. */
int ag_store_open(const ag_flash *flash, ag_checkpoint *c, ag_record *record);

/* Reads bytes of its body: 0, or AG_STORE_ERR_FLASH. */
int ag_store_read(const ag_record *record, uint32_t offset, void *data, uint32_t bytes);

/* The erase count of a slot, 0 when it was never used. */
uint32_t ag_store_erased(const ag_flash *flash, uint32_t slot);

/* The bytes that a record programs. */
uint32_t ag_store_programmed(const ag_record *record);

const char *ag_store_strstatus(int status);

#ifdef __cplusplus
}
#endif
#endif
