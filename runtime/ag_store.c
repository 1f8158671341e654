#include "ag_store_records.h"

#include "ag_crc32.h"

#include <string.h>

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
    uint32_t words[AG_NOTE_WORDS];
    if (save(memory, write_cb, b) != 0) {
        return -1;
    }
    if (note == NULL) {
        return 0;
    }
    ag_note_words(note, words);
    return write_cb(b, b->length, words, AG_NOTE_BYTES);
}

/* Erases a slot and programs its header with the incremented erase count. */
static bool erase_slot(const ag_flash *f, uint32_t slot) {
    uint32_t h[AG_SLOT_WORDS], readback[AG_SLOT_WORDS], erase_count;
    const uint32_t address = slot * f->slot_bytes;
    (void)ag_slot_is_formatted(f, slot, &erase_count);
    if (f->erase(f->ctx, address) != 0 || ag_flash_written(f, address, address + f->slot_bytes) != address) {
        return false;
    }
    h[AG_SLOT_MAGIC] = AG_SLOT_MAGIC_WORD;
    h[AG_SLOT_FORMAT] = AG_SLOT_FORMAT_VERSION;
    h[AG_SLOT_ERASE_COUNT] = erase_count + 1;
    h[AG_SLOT_CRC] = ag_words_crc(h, AG_SLOT_CRC);
    return f->program(f->ctx, address, h, AG_SLOT_BYTES) == 0 &&
           f->read(f->ctx, address, readback, AG_SLOT_BYTES) == 0 && memcmp(h, readback, AG_SLOT_BYTES) == 0;
}

/* Programs one record and reads it back. AG_STORE_ERR_WORN: another location may succeed. */
static int append(const ag_flash *f, ag_record_ref *p, ag_save_fn *save, const void *memory,
                  const ag_note *note) {
    uint32_t readback[AG_RECORD_WORDS];
    body_stream b = {f, p->address + AG_RECORD_BYTES, 0,
                     ag_words_crc(p->header + AG_RECORD_PROGRAM, AG_RECORD_EXTRA_BYTES / 4)};
    if (f->program(f->ctx, p->address, p->header, AG_RECORD_BYTES) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (write_body(save, memory, note, &b) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (b.length + AG_RECORD_EXTRA_BYTES != p->header[AG_RECORD_LENGTH] ||
        b.crc != p->header[AG_RECORD_BODY_CRC]) {
        return AG_STORE_ERR_SAVE;
    }
    if (f->read(f->ctx, p->address, readback, AG_RECORD_BYTES) != 0 ||
        memcmp(readback, p->header, AG_RECORD_BYTES) != 0 || !ag_record_is_valid(f, p)) {
        return AG_STORE_ERR_WORN;
    }
    return AG_STORE_OK;
}

int ag_store_save(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory) {
    return ag_store_save_noted(flash, c, save, memory, NULL);
}

int ag_store_save_noted(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory,
                        const ag_note *note) {
    ag_record_ref p;
    p.header[AG_RECORD_PROGRAM] = c->program;
    p.header[AG_RECORD_ROUND] = c->round;
    body_stream size = {NULL, 0, 0, ag_words_crc(p.header + AG_RECORD_PROGRAM, AG_RECORD_EXTRA_BYTES / 4)};
    if (write_body(save, memory, note, &size) != 0) {
        return AG_STORE_ERR_SAVE;
    }
    if (flash->slots < 2 || flash->slot_bytes < AG_SLOT_BYTES + AG_RECORD_BYTES ||
        size.length > flash->slot_bytes - AG_SLOT_BYTES - AG_RECORD_BYTES) {
        return AG_STORE_ERR_FULL;
    }
    ag_scan s = ag_store_scan(flash, c->graph_id, c->program);
    if (!s.found) { /* the first one of a program does not replace the last one of another */
        s = ag_store_scan(flash, c->graph_id, AG_ANY_PROGRAM);
    }
    if (s.read_failed) {
        return AG_STORE_ERR_FLASH;
    }
    p.header[AG_RECORD_MAGIC] = AG_RECORD_MAGIC_WORD;
    p.header[AG_RECORD_FORMAT] = AG_RECORD_FORMAT_VERSION;
    p.header[AG_RECORD_GRAPH] = c->graph_id;
    p.header[AG_RECORD_SEQUENCE] = s.sequence + 1;
    p.header[AG_RECORD_LENGTH] = AG_RECORD_EXTRA_BYTES + size.length;
    p.header[AG_RECORD_STEPS] = c->steps;
    p.header[AG_RECORD_BODY_CRC] = size.crc;
    p.header[AG_RECORD_HEADER_CRC] = ag_words_crc(p.header, AG_RECORD_HEADER_CRC);
    const uint32_t need = AG_RECORD_BYTES + size.length;
    /* The current slot while there is room in it; then the others, round robin. */
    int failure = AG_STORE_ERR_WORN;
    for (uint32_t i = 0; i < flash->slots; i++) {
        bool later_format;
        p.slot = ((s.any_graph ? s.last_slot : 0) + i) % flash->slots;
        const uint32_t start = p.slot * flash->slot_bytes, end = ag_slot_end(flash, p.slot, &later_format);
        if (later_format) {
            failure = AG_STORE_ERR_FORMAT;
            continue;
        }
        for (uint32_t erase = 0; erase < 2; erase++) {
            p.address = start + (erase == 0 ? end : (uint32_t)AG_SLOT_BYTES);
            if (erase == 0) {
                if (end == 0 || flash->slot_bytes - end < need ||
                    ag_flash_written(flash, p.address, p.address + need) != p.address) {
                    continue;
                }
            } else if ((s.found && p.slot == s.newest.slot) || !erase_slot(flash, p.slot)) {
                continue;
            }
            const int status = append(flash, &p, save, memory, note);
            if (status == AG_STORE_OK) {
                c->sequence = p.header[AG_RECORD_SEQUENCE];
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
    const ag_scan s = ag_store_scan(flash, c->graph_id, program);
    if (!s.found) {
        return s.read_failed      ? AG_STORE_ERR_FLASH
               : s.later_format   ? AG_STORE_ERR_FORMAT
               : s.other_program  ? AG_STORE_ERR_PROGRAM
               : s.earlier_format ? AG_STORE_ERR_EARLIER
               : s.other_graph    ? AG_STORE_ERR_GRAPH
               : s.damaged        ? AG_STORE_ERR_DAMAGED
                                  : AG_STORE_ERR_NONE;
    }
    body_stream b = {flash, s.newest.address + AG_RECORD_BYTES,
                     s.newest.header[AG_RECORD_LENGTH] - AG_RECORD_EXTRA_BYTES, 0};
    if (load(memory, read_cb, &b) != 0) {
        return AG_STORE_ERR_LOAD;
    }
    c->steps = s.newest.header[AG_RECORD_STEPS];
    c->sequence = s.newest.header[AG_RECORD_SEQUENCE];
    c->program = s.newest.header[AG_RECORD_PROGRAM];
    c->round = s.newest.header[AG_RECORD_ROUND];
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
