/* Slots and records as they are in flash: docs/store.md. Internal to the store. */
#ifndef AG_STORE_RECORDS_H
#define AG_STORE_RECORDS_H

#include "ag_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Words of a slot's header: magic, format, erase count, CRC-32 of these. It is programmed after the erase has
 * completed; a slot without a valid header is erased before it is used. */
enum { AG_SLOT_MAGIC, AG_SLOT_FORMAT, AG_SLOT_ERASE_COUNT, AG_SLOT_CRC, AG_SLOT_WORDS };
/* Words of a record: its header, and two that length and checksum of the body include; the state follows. */
enum {
    AG_RECORD_MAGIC,
    AG_RECORD_FORMAT,
    AG_RECORD_GRAPH,
    AG_RECORD_SEQUENCE,
    AG_RECORD_LENGTH,
    AG_RECORD_STEPS,
    AG_RECORD_BODY_CRC,
    AG_RECORD_HEADER_CRC,
    AG_RECORD_HEADER_WORDS,
    AG_RECORD_PROGRAM = AG_RECORD_HEADER_WORDS,
    AG_RECORD_ROUND,
    AG_RECORD_WORDS
};

#define AG_SLOT_MAGIC_WORD 0x53534741u   /* "AGSS" */
#define AG_RECORD_MAGIC_WORD 0x52534741u /* "AGSR" */
#define AG_SLOT_FORMAT_VERSION 1u
#define AG_RECORD_FORMAT_VERSION 2u

enum {
    AG_SLOT_BYTES = 4 * AG_SLOT_WORDS,
    AG_RECORD_HEADER_BYTES = 4 * AG_RECORD_HEADER_WORDS,
    AG_RECORD_BYTES = 4 * AG_RECORD_WORDS,
    AG_RECORD_EXTRA_BYTES = AG_RECORD_BYTES - AG_RECORD_HEADER_BYTES,
    AG_NOTE_WORDS = sizeof(ag_note) / 4 + 2, /* the note, its magic, CRC-32 of these */
    AG_NOTE_BYTES = 4 * AG_NOTE_WORDS,
};

typedef struct ag_record_ref {
    uint32_t slot, address; /* of the record's header, relative to the region */
    uint32_t header[AG_RECORD_WORDS];
} ag_record_ref;

/* The result of one scan of the region. */
typedef struct ag_scan {
    bool found;                  /* a valid record of the requested graph and program */
    bool other_program;          /* one of the graph and another program */
    bool any_graph, other_graph; /* a record with a valid header; one of another graph */
    ag_record_ref newest;        /* of the requested graph and program */
    uint32_t last_slot;          /* slot of the newest record with a valid header, of any graph */
    uint32_t sequence;           /* the highest one */
    bool later_format;           /* a slot or record of a later format */
    bool earlier_format;         /* a record of an earlier format */
    bool read_failed;            /* the flash could not be read */
    bool damaged;                /* something is written that is no valid record */
} ag_scan;

/* Where the next record of a slot is looked for, and the end of all that is written in it; 0 while unknown.
 */
typedef struct ag_record_cursor {
    uint32_t offset, end;
} ag_record_cursor;

uint32_t ag_words_crc(const uint32_t *words, uint32_t count);

/* Whether a slot has a valid header of this format; and its erase count, 0 without a valid header. */
bool ag_slot_is_formatted(const ag_flash *f, uint32_t slot, uint32_t *erase_count);

/* Offset after the last record of a slot with a valid header, 0 where the slot has no header of this format.
 * Data of a later format must not be erased. */
uint32_t ag_slot_end(const ag_flash *f, uint32_t slot, bool *later_format);

/* The address after the last word that is not erased, `from` if all are. `to` where these cannot be read. */
uint32_t ag_flash_written(const ag_flash *f, uint32_t from, uint32_t to);

/* Reads the first valid record header of a slot from the cursor on, which then is after its record.
 * Where the header that should be there is damaged, later records are still found. */
bool ag_record_next(const ag_flash *f, uint32_t slot, ag_record_cursor *c, ag_record_ref *p, ag_scan *s);

/* Whether the body matches the checksum in the header. */
bool ag_record_is_valid(const ag_flash *f, const ag_record_ref *p);

ag_scan ag_store_scan(const ag_flash *f, uint32_t graph_id, uint32_t program);

/* The words of a note, as they are after a body. */
void ag_note_words(const ag_note *note, uint32_t words[AG_NOTE_WORDS]);

#ifdef __cplusplus
}
#endif
#endif
