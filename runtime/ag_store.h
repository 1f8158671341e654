/* Checkpoints in flash that survive a power cut at any word: docs/store.md has the format.
 *
 * The region is cut into slots, each erased as one. Records are appended to a slot until it is full; then the
 * next slot is erased and taken, so that all of them wear alike, and never the one that holds the newest good
 * record. A record counts only when header and body have the checksums that the header names. */
#ifndef AG_STORE_H
#define AG_STORE_H

#include "ag_io.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AG_STORE_OK = 0,
    AG_STORE_ERR_NONE = -64,     /* no checkpoint, or damaged ones alone */
    AG_STORE_ERR_GRAPH = -65,    /* checkpoints of other models alone */
    AG_STORE_ERR_FORMAT = -66,   /* checkpoints of a later format alone, or no slot without them */
    AG_STORE_ERR_FULL = -67,     /* a checkpoint is larger than a slot, or there are fewer than two slots */
    AG_STORE_ERR_WORN = -68,     /* what was programmed does not read back, in any slot that may be used */
    AG_STORE_ERR_FLASH = -69,    /* the flash cannot be read */
    AG_STORE_ERR_SAVE = -70,     /* the producer failed, or gave other bytes the second time */
    AG_STORE_ERR_LOAD = -71,     /* the consumer refused the body */
    AG_STORE_ERR_NO_FLASH = -72, /* this board has no flash for checkpoints */
};

/* Flash for checkpoints. Addresses count from the region's start. All return 0, or negative on failure.
 * program: `address` and `bytes` are multiples of 4, and the words are erased (0xffffffff).
 * erase: one slot; `address` is its start. Afterwards its bytes read 0xff. */
typedef struct ag_flash {
    ag_read_fn *read;
    ag_write_fn *program;
    int (*erase)(void *ctx, uint32_t address);
    void *ctx;
    uint32_t slots, slot_bytes; /* at least two slots; slot_bytes is a multiple of 4 */
} ag_flash;

/* What a record says of itself beside its body. */
typedef struct ag_checkpoint {
    uint32_t graph_id;
    uint32_t steps;    /* steps of training that it has behind it */
    uint32_t sequence; /* counts the saves of the region, from 1 */
} ag_checkpoint;

/* Writes the whole body by `write`, in order and in multiples of 4 bytes; is called twice, and must write the
 * same bytes both times. <m>_save behind a cast of its first argument. */
typedef int ag_save_fn(const void *memory, ag_write_fn *write, void *ctx);
typedef int ag_load_fn(void *memory, ag_read_fn *read, void *ctx);

/* Append a checkpoint; `c` gives graph_id and steps and gets the sequence. On failure the newest good one
 * stays. */
int ag_store_save(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory);

/* Give the newest good checkpoint with c->graph_id to `load`, then fill in `c`. */
int ag_store_load(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory);

/* Times that a slot has been erased, 0 when it was never used. */
uint32_t ag_store_erased(const ag_flash *flash, uint32_t slot);

const char *ag_store_strstatus(int status);

#ifdef __cplusplus
}
#endif
#endif
