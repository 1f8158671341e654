#include "ag_store.h"

#include "ag_crc32.h"

#include <stdbool.h>
#include <string.h>

/* Words of a slot's header: magic, format, erase count, CRC-32 of these. It is programmed after the erase has
 * completed; a slot without a valid header is erased before it is used. */
enum { SLOT_MAGIC, SLOT_FORMAT, SLOT_ERASE_COUNT, SLOT_CRC, SLOT_WORDS };
/* Words of a record: its header, and two that length and checksum of the body include; the state follows. */
enum {
    MAGIC,
    FORMAT,
    GRAPH,
    SEQUENCE,
    LENGTH,
    STEPS,
    BODY_CRC,
    HEADER_CRC,
    HEADER_WORDS,
    PROGRAM = HEADER_WORDS,
    ROUND,
    RECORD_WORDS
};

#define SLOT_MAGIC_WORD 0x53534741u   /* "AGSS" */
#define RECORD_MAGIC_WORD 0x52534741u /* "AGSR" */
#define SLOT_FORMAT_VERSION 1u
#define FORMAT_VERSION 2u
#define ERASED_WORD 0xffffffffu
#define NOTE_MAGIC_WORD 0x4e534741u /* "AGSN" */

enum {
    SLOT_BYTES = 4 * SLOT_WORDS,
    HEADER_BYTES = 4 * HEADER_WORDS,
    RECORD_BYTES = 4 * RECORD_WORDS,
    EXTRA_BYTES = RECORD_BYTES - HEADER_BYTES,
    NOTE_WORDS = sizeof(ag_note) / 4 + 2, /* the note, NOTE_MAGIC_WORD, CRC-32 of these */
    NOTE_BYTES = 4 * NOTE_WORDS,
    CHUNK = 64
};

typedef struct record_ref {
    uint32_t slot, address; /* of the record's header, relative to the region */
    uint32_t header[RECORD_WORDS];
} record_ref;

/* The result of one scan of the region. */
typedef struct scan_result {
    bool found;                  /* a valid record of the requested graph and program */
    bool other_program;          /* one of the graph and another program */
    bool any_graph, other_graph; /* a record with a valid header; one of another graph */
    record_ref newest;           /* of the requested graph and program */
    uint32_t last_slot;          /* slot of the newest record with a valid header, of any graph */
    uint32_t sequence;           /* the highest one */
    bool later_format;           /* a slot or record of a later format */
    bool earlier_format;         /* a record of an earlier format */
    bool read_failed;            /* the flash could not be read */
    bool damaged;                /* something is written that is no valid record */
} scan_result;

static uint32_t crc_of(const uint32_t *words, uint32_t count) {
    return ag_crc32(0, words, 4u * count);
}

/* The format of a slot, 0 where it has no valid header, and its erase count. */
static uint32_t slot_format(const ag_flash *f, uint32_t slot, uint32_t *erase_count) {
    uint32_t h[SLOT_WORDS];
    *erase_count = 0;
    if (f->read(f->ctx, slot * f->slot_bytes, h, SLOT_BYTES) != 0 || h[SLOT_MAGIC] != SLOT_MAGIC_WORD ||
        h[SLOT_CRC] != crc_of(h, SLOT_CRC)) {
        return 0;
    }
    *erase_count = h[SLOT_ERASE_COUNT];
    return h[SLOT_FORMAT];
}

static bool slot_is_formatted(const ag_flash *f, uint32_t slot, uint32_t *erase_count) {
    return slot_format(f, slot, erase_count) == SLOT_FORMAT_VERSION;
}

uint32_t ag_store_erased(const ag_flash *flash, uint32_t slot) {
    uint32_t erase_count;
    (void)slot_is_formatted(flash, slot, &erase_count);
    return erase_count;
}

static bool body_is_valid(const ag_flash *f, const record_ref *p) {
    uint32_t chunk[CHUNK / 4], crc = 0;
    for (uint32_t offset = 0; offset < p->header[LENGTH]; offset += CHUNK) {
        const uint32_t remaining = p->header[LENGTH] - offset, bytes = remaining < CHUNK ? remaining : CHUNK;
        if (f->read(f->ctx, p->address + HEADER_BYTES + offset, chunk, bytes) != 0) {
            return false;
        }
        crc = ag_crc32(crc, chunk, bytes);
    }
    return crc == p->header[BODY_CRC];
}

/* Reads the record header at `offset` of a slot; returns whether there is a valid one. */
static bool read_header(const ag_flash *f, uint32_t slot, uint32_t offset, record_ref *p, scan_result *s) {
    if (f->slot_bytes - offset < HEADER_BYTES) {
        return false;
    }
    p->slot = slot;
    p->address = slot * f->slot_bytes + offset;
    if (f->read(f->ctx, p->address, p->header, HEADER_BYTES) != 0) {
        s->read_failed = true;
        return false;
    }
    if (p->header[MAGIC] != RECORD_MAGIC_WORD || p->header[HEADER_CRC] != crc_of(p->header, HEADER_CRC)) {
        return false;
    }
    if (p->header[FORMAT] > FORMAT_VERSION) {
        s->later_format = true;
        return false;
    }
    if (p->header[LENGTH] > f->slot_bytes - offset - HEADER_BYTES || p->header[LENGTH] % 4 != 0) {
        return false;
    }
    if (p->header[FORMAT] < FORMAT_VERSION) {
        return true;
    }
    if (p->header[LENGTH] < EXTRA_BYTES) {
        return false;
    }
    if (f->read(f->ctx, p->address + HEADER_BYTES, p->header + PROGRAM, EXTRA_BYTES) != 0) {
        s->read_failed = true;
        return false;
    }
    return true;
}

static bool words_are_erased(const uint32_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (words[i] != ERASED_WORD) {
            return false;
        }
    }
    return true;
}

static bool is_erased(const ag_flash *f, uint32_t address, uint32_t bytes) {
    uint32_t chunk[CHUNK / 4];
    for (uint32_t offset = 0; offset < bytes; offset += CHUNK) {
        const uint32_t remaining = bytes - offset, count = remaining < CHUNK ? remaining : CHUNK;
        if (f->read(f->ctx, address + offset, chunk, count) != 0) {
            return false;
        }
        if (!words_are_erased(chunk, count / 4)) {
            return false;
        }
    }
    return true;
}

/* Where the next record of a slot is looked for, and the end of all that is written in it; 0 while unknown.
 */
typedef struct cursor {
    uint32_t offset, end;
} cursor;

/* The offset after the last word of a slot that is not erased, or that cannot be read; `offset` if there is
 * none from there on. */
static uint32_t end_of_slot(const ag_flash *f, uint32_t slot, uint32_t offset) {
    uint32_t chunk[CHUNK / 4], end = offset;
    for (uint32_t at = offset; at < f->slot_bytes; at += CHUNK) {
        const uint32_t remaining = f->slot_bytes - at, bytes = remaining < CHUNK ? remaining : CHUNK;
        if (f->read(f->ctx, slot * f->slot_bytes + at, chunk, bytes) != 0) {
            return f->slot_bytes;
        }
        for (uint32_t i = 0; i < bytes / 4; i++) {
            if (chunk[i] != ERASED_WORD) {
                end = at + 4 * (i + 1);
            }
        }
    }
    return end;
}

/* Reads the first valid record header of a slot from the cursor on, which becomes that after its record.
 * Where the header that should be there is damaged, later records are still found. */
static bool next_record(const ag_flash *f, uint32_t slot, cursor *c, record_ref *p, scan_result *s) {
    scan_result of_slot;
    memset(&of_slot, 0, sizeof of_slot);
    bool found = false;
    for (uint32_t at = c->offset; f->slot_bytes - at >= HEADER_BYTES; at += 4) {
        found = read_header(f, slot, at, p, &of_slot);
        if (found) {
            c->offset = at + HEADER_BYTES + p->header[LENGTH];
            break;
        }
        if (c->end == 0) { /* once for a slot: the time stays linear whatever is written in it */
            c->end = end_of_slot(f, slot, at);
        }
        if (of_slot.later_format || of_slot.read_failed || at >= c->end) {
            break;
        }
        s->damaged = true;
    }
    s->later_format |= of_slot.later_format;
    s->read_failed |= of_slot.read_failed;
    return found;
}

/* Offset after the last record of a slot with a valid header; and whether a record of a later format follows.
 */
static uint32_t end_of_records(const ag_flash *f, uint32_t slot, bool *later_format) {
    scan_result s;
    record_ref p;
    cursor c = {SLOT_BYTES, 0};
    memset(&s, 0, sizeof s);
    while (next_record(f, slot, &c, &p, &s)) {
    }
    *later_format = s.later_format;
    return c.offset;
}

/* Whether a slot contains data of a later format, which must not be erased. */
static bool has_later_format(const ag_flash *f, uint32_t slot) {
    uint32_t erase_count;
    bool later_format = slot_format(f, slot, &erase_count) > SLOT_FORMAT_VERSION;
    if (!later_format && slot_is_formatted(f, slot, &erase_count)) {
        (void)end_of_records(f, slot, &later_format);
    }
    return later_format;
}

/* Takes a record of the requested graph into account. Only with its body is its program known to be right. */
static void consider(const ag_flash *f, const record_ref *p, uint32_t program, scan_result *s) {
    const bool mine = program == AG_ANY_PROGRAM || p->header[PROGRAM] == program;
    const bool is_new =
        mine ? !s->found || p->header[SEQUENCE] > s->newest.header[SEQUENCE] : !s->other_program;
    if (!is_new) {
        return;
    }
    if (!body_is_valid(f, p)) {
        s->damaged = true;
    } else if (mine) {
        s->found = true;
        s->newest = *p;
    } else {
        s->other_program = true;
    }
}

static scan_result scan(const ag_flash *f, uint32_t graph_id, uint32_t program) {
    scan_result s;
    memset(&s, 0, sizeof s);
    for (uint32_t slot = 0; slot < f->slots; slot++) {
        uint32_t erase_count;
        cursor c = {SLOT_BYTES, 0};
        record_ref p;
        const uint32_t format = slot_format(f, slot, &erase_count);
        s.later_format |= format > SLOT_FORMAT_VERSION;
        if (format != SLOT_FORMAT_VERSION) {
            scan_result ignored;
            memset(&ignored, 0, sizeof ignored);
            s.damaged |= format == 0 && read_header(f, slot, SLOT_BYTES, &p, &ignored);
            continue;
        }
        while (next_record(f, slot, &c, &p, &s)) {
            if (!s.any_graph || p.header[SEQUENCE] > s.sequence) {
                s.any_graph = true;
                s.sequence = p.header[SEQUENCE];
                s.last_slot = slot;
            }
            if (p.header[FORMAT] < FORMAT_VERSION) {
                s.earlier_format = true;
            } else if (p.header[GRAPH] != graph_id) {
                s.other_graph = true;
            } else {
                consider(f, &p, program, &s);
            }
        }
    }
    return s;
}

/* State of the write callback: the checksum of the body, and in the second pass the flash address. */
typedef struct body_stream {
    const ag_flash *flash; /* NULL in the first pass, which only computes length and CRC */
    uint32_t address, length, crc;
} body_stream;

static int write_cb(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    body_stream *b = (body_stream *)ctx;
    if (offset != b->length || bytes % 4 != 0) {
        return -1;
    }
    if (b->flash != NULL && b->flash->program(b->flash->ctx, b->address + offset, data, bytes) != 0) {
        return -1;
    }
    b->crc = ag_crc32(b->crc, data, bytes);
    b->length += bytes;
    return 0;
}

/* Writes the body, and the note after it. */
static int write_body(ag_save_fn *save, const void *memory, const ag_note *note, body_stream *b) {
    uint32_t words[NOTE_WORDS];
    if (save(memory, write_cb, b) != 0) {
        return -1;
    }
    if (note == NULL) {
        return 0;
    }
    memcpy(words, note, sizeof *note);
    words[NOTE_WORDS - 2] = NOTE_MAGIC_WORD;
    words[NOTE_WORDS - 1] = crc_of(words, NOTE_WORDS - 1);
    return write_cb(b, b->length, words, NOTE_BYTES);
}

/* Erases a slot and programs its header with the incremented erase count. */
static bool erase_slot(const ag_flash *f, uint32_t slot) {
    uint32_t h[SLOT_WORDS], readback[SLOT_WORDS], erase_count;
    const uint32_t address = slot * f->slot_bytes;
    (void)slot_is_formatted(f, slot, &erase_count);
    if (f->erase(f->ctx, address) != 0 || !is_erased(f, address, f->slot_bytes)) {
        return false;
    }
    h[SLOT_MAGIC] = SLOT_MAGIC_WORD;
    h[SLOT_FORMAT] = SLOT_FORMAT_VERSION;
    h[SLOT_ERASE_COUNT] = erase_count + 1;
    h[SLOT_CRC] = crc_of(h, SLOT_CRC);
    return f->program(f->ctx, address, h, SLOT_BYTES) == 0 &&
           f->read(f->ctx, address, readback, SLOT_BYTES) == 0 && memcmp(h, readback, SLOT_BYTES) == 0;
}

/* Programs one record and reads it back. AG_STORE_ERR_WORN: another location may succeed. */
static int append(const ag_flash *f, record_ref *p, ag_save_fn *save, const void *memory,
                  const ag_note *note) {
    uint32_t readback[RECORD_WORDS];
    body_stream b = {f, p->address + RECORD_BYTES, 0, ag_crc32(0, p->header + PROGRAM, EXTRA_BYTES)};
    if (f->program(f->ctx, p->address, p->header, RECORD_BYTES) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (write_body(save, memory, note, &b) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (b.length + EXTRA_BYTES != p->header[LENGTH] || b.crc != p->header[BODY_CRC]) {
        return AG_STORE_ERR_SAVE;
    }
    if (f->read(f->ctx, p->address, readback, RECORD_BYTES) != 0 ||
        memcmp(readback, p->header, RECORD_BYTES) != 0 || !body_is_valid(f, p)) {
        return AG_STORE_ERR_WORN;
    }
    return AG_STORE_OK;
}

int ag_store_save(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory) {
    return ag_store_save_noted(flash, c, save, memory, NULL);
}

int ag_store_save_noted(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory,
                        const ag_note *note) {
    record_ref p;
    p.header[PROGRAM] = c->program;
    p.header[ROUND] = c->round;
    body_stream size = {NULL, 0, 0, ag_crc32(0, p.header + PROGRAM, EXTRA_BYTES)};
    if (write_body(save, memory, note, &size) != 0) {
        return AG_STORE_ERR_SAVE;
    }
    if (flash->slots < 2 || flash->slot_bytes < SLOT_BYTES + RECORD_BYTES ||
        size.length > flash->slot_bytes - SLOT_BYTES - RECORD_BYTES) {
        return AG_STORE_ERR_FULL;
    }
    scan_result s = scan(flash, c->graph_id, c->program);
    if (!s.found) { /* the first one of a program does not replace the last one of another */
        s = scan(flash, c->graph_id, AG_ANY_PROGRAM);
    }
    if (s.read_failed) {
        return AG_STORE_ERR_FLASH;
    }
    p.header[MAGIC] = RECORD_MAGIC_WORD;
    p.header[FORMAT] = FORMAT_VERSION;
    p.header[GRAPH] = c->graph_id;
    p.header[SEQUENCE] = s.sequence + 1;
    p.header[LENGTH] = EXTRA_BYTES + size.length;
    p.header[STEPS] = c->steps;
    p.header[BODY_CRC] = size.crc;
    p.header[HEADER_CRC] = crc_of(p.header, HEADER_CRC);
    const uint32_t need = RECORD_BYTES + size.length;
    /* The current slot while there is room in it; then the others, round robin. */
    int failure = AG_STORE_ERR_WORN;
    for (uint32_t i = 0; i < flash->slots; i++) {
        uint32_t erase_count;
        bool later_format;
        p.slot = ((s.any_graph ? s.last_slot : 0) + i) % flash->slots;
        if (has_later_format(flash, p.slot)) {
            failure = AG_STORE_ERR_FORMAT;
            continue;
        }
        for (uint32_t erase = 0; erase < 2; erase++) {
            uint32_t offset = SLOT_BYTES;
            if (erase == 0) {
                if (!slot_is_formatted(flash, p.slot, &erase_count)) {
                    continue;
                }
                offset = end_of_records(flash, p.slot, &later_format);
                if (flash->slot_bytes - offset < need ||
                    !is_erased(flash, p.slot * flash->slot_bytes + offset, need)) {
                    continue;
                }
            } else if ((s.found && p.slot == s.newest.slot) || !erase_slot(flash, p.slot)) {
                continue;
            }
            p.address = p.slot * flash->slot_bytes + offset;
            const int status = append(flash, &p, save, memory, note);
            if (status == AG_STORE_OK) {
                c->sequence = p.header[SEQUENCE];
            }
            if (status != AG_STORE_ERR_WORN) {
                return status;
            }
        }
    }
    return failure;
}

static int read_cb(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    const body_stream *b = (const body_stream *)ctx;
    if (offset > b->length || bytes > b->length - offset) {
        return -1;
    }
    return b->flash->read(b->flash->ctx, b->address + offset, data, bytes);
}

static int load_of(const ag_flash *flash, uint32_t program, ag_checkpoint *c, ag_load_fn *load,
                   void *memory) {
    const scan_result s = scan(flash, c->graph_id, program);
    if (!s.found) {
        return s.read_failed      ? AG_STORE_ERR_FLASH
               : s.later_format   ? AG_STORE_ERR_FORMAT
               : s.other_program  ? AG_STORE_ERR_PROGRAM
               : s.earlier_format ? AG_STORE_ERR_EARLIER
               : s.other_graph    ? AG_STORE_ERR_GRAPH
               : s.damaged        ? AG_STORE_ERR_DAMAGED
                                  : AG_STORE_ERR_NONE;
    }
    body_stream b = {flash, s.newest.address + RECORD_BYTES, s.newest.header[LENGTH] - EXTRA_BYTES, 0};
    if (load(memory, read_cb, &b) != 0) {
        return AG_STORE_ERR_LOAD;
    }
    c->steps = s.newest.header[STEPS];
    c->sequence = s.newest.header[SEQUENCE];
    c->program = s.newest.header[PROGRAM];
    c->round = s.newest.header[ROUND];
    return AG_STORE_OK;
}

int ag_store_load(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory) {
    return load_of(flash, c->program, c, load, memory);
}

int ag_store_load_any(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory) {
    return load_of(flash, AG_ANY_PROGRAM, c, load, memory);
}

/* A load function that keeps where the body is. */
static int keep_place(void *memory, ag_read_fn *read, void *ctx) {
    ag_record *record = (ag_record *)memory;
    const body_stream *b = (const body_stream *)ctx;
    (void)read;
    record->flash = b->flash;
    record->address = b->address;
    record->bytes = b->length;
    return 0;
}

int ag_store_open(const ag_flash *flash, ag_checkpoint *c, ag_record *record) {
    const uint32_t round = c->round;
    const int status = ag_store_load(flash, c, keep_place, record);
    return status == AG_STORE_OK && c->round != round ? AG_STORE_ERR_NONE : status;
}

int ag_store_read(const ag_record *record, uint32_t offset, void *data, uint32_t bytes) {
    body_stream b = {record->flash, record->address, record->bytes, 0};
    return read_cb(&b, offset, data, bytes) == 0 ? AG_STORE_OK : AG_STORE_ERR_FLASH;
}

bool ag_store_note(const ag_record *record, ag_note *note) {
    uint32_t words[NOTE_WORDS];
    if (record->bytes < NOTE_BYTES ||
        ag_store_read(record, record->bytes - NOTE_BYTES, words, NOTE_BYTES) != AG_STORE_OK ||
        words[NOTE_WORDS - 2] != NOTE_MAGIC_WORD || words[NOTE_WORDS - 1] != crc_of(words, NOTE_WORDS - 1)) {
        return false;
    }
    memcpy(note, words, sizeof *note);
    return true;
}

bool ag_store_newest_note(const ag_flash *flash, ag_note *note) {
    uint32_t sequence = 0, erase_count;
    for (uint32_t slot = 0; slot < flash->slots; slot++) {
        scan_result ignored;
        record_ref p;
        cursor c = {SLOT_BYTES, 0};
        memset(&ignored, 0, sizeof ignored);
        while (slot_is_formatted(flash, slot, &erase_count) && next_record(flash, slot, &c, &p, &ignored)) {
            const ag_record record = {flash, p.address + RECORD_BYTES, p.header[LENGTH] - EXTRA_BYTES};
            if (p.header[FORMAT] == FORMAT_VERSION && p.header[SEQUENCE] > sequence &&
                body_is_valid(flash, &p) && ag_store_note(&record, note)) {
                sequence = p.header[SEQUENCE];
            }
        }
    }
    return sequence != 0;
}

uint32_t ag_store_programmed(const ag_record *record) {
    return RECORD_BYTES + record->bytes;
}

const char *ag_store_strstatus(int status) {
    switch (status) {
    case AG_STORE_OK:
        return "ok";
    case AG_STORE_ERR_NONE:
        return "there is no good checkpoint";
    case AG_STORE_ERR_GRAPH:
        return "the checkpoints belong to another model";
    case AG_STORE_ERR_FORMAT:
        return "the checkpoints have a later format";
    case AG_STORE_ERR_FULL:
        return "a checkpoint is larger than a slot of the flash";
    case AG_STORE_ERR_WORN:
        return "the flash is worn: what was programmed does not read back";
    case AG_STORE_ERR_FLASH:
        return "the flash cannot be read";
    case AG_STORE_ERR_SAVE:
        return "the state changed while it was saved";
    case AG_STORE_ERR_LOAD:
        return "the model rejected the checkpoint";
    case AG_STORE_ERR_NO_FLASH:
        return "this board has no flash for checkpoints";
    case AG_STORE_ERR_SIZE:
        return "flash.bin has another size than the flash of this firmware";
    case AG_STORE_ERR_PROGRAM:
        return "the checkpoints are of another program";
    case AG_STORE_ERR_EARLIER:
        return "the checkpoints have an earlier format";
    case AG_STORE_ERR_DAMAGED:
        return "the checkpoint is damaged";
    default:
        return "unknown status";
    }
}
