#include "ag_store_records.h"

#include "ag_crc32.h"

#include <string.h>

#define ERASED_WORD 0xffffffffu

enum { CHUNK = 64 };

uint32_t ag_words_crc(const uint32_t *words, uint32_t count) {
    return ag_crc32(0, words, 4u * count);
}

/* The format of a slot, 0 where it has no valid header, and its erase count. */
static uint32_t slot_format(const ag_flash *f, uint32_t slot, uint32_t *erase_count) {
    uint32_t h[AG_SLOT_WORDS];
    *erase_count = 0;
    if (f->read(f->ctx, slot * f->slot_bytes, h, AG_SLOT_BYTES) != 0 ||
        h[AG_SLOT_MAGIC] != AG_SLOT_MAGIC_WORD || h[AG_SLOT_CRC] != ag_words_crc(h, AG_SLOT_CRC)) {
        return 0;
    }
    *erase_count = h[AG_SLOT_ERASE_COUNT];
    return h[AG_SLOT_FORMAT];
}

bool ag_slot_is_formatted(const ag_flash *f, uint32_t slot, uint32_t *erase_count) {
    return slot_format(f, slot, erase_count) == AG_SLOT_FORMAT_VERSION;
}

bool ag_record_is_valid(const ag_flash *f, const ag_record_ref *p) {
    uint32_t chunk[CHUNK / 4], crc = 0;
    for (uint32_t offset = 0; offset < p->header[AG_RECORD_LENGTH]; offset += CHUNK) {
        const uint32_t remaining = p->header[AG_RECORD_LENGTH] - offset,
                       bytes = remaining < CHUNK ? remaining : CHUNK;
        if (f->read(f->ctx, p->address + AG_RECORD_HEADER_BYTES + offset, chunk, bytes) != 0) {
            return false;
        }
        crc = ag_crc32(crc, chunk, bytes);
    }
    return crc == p->header[AG_RECORD_BODY_CRC];
}

/* Reads the record header at `offset` of a slot; returns whether there is a valid one. */
static bool read_header(const ag_flash *f, uint32_t slot, uint32_t offset, ag_record_ref *p, ag_scan *s) {
    if (f->slot_bytes - offset < AG_RECORD_HEADER_BYTES) {
        return false;
    }
    p->slot = slot;
    p->address = slot * f->slot_bytes + offset;
    if (f->read(f->ctx, p->address, p->header, AG_RECORD_HEADER_BYTES) != 0) {
        s->read_failed = true;
        return false;
    }
    if (p->header[AG_RECORD_MAGIC] != AG_RECORD_MAGIC_WORD ||
        p->header[AG_RECORD_HEADER_CRC] != ag_words_crc(p->header, AG_RECORD_HEADER_CRC)) {
        return false;
    }
    if (p->header[AG_RECORD_FORMAT] > AG_RECORD_FORMAT_VERSION) {
        s->later_format = true;
        return false;
    }
    if (p->header[AG_RECORD_LENGTH] > f->slot_bytes - offset - AG_RECORD_HEADER_BYTES ||
        p->header[AG_RECORD_LENGTH] % 4 != 0) {
        return false;
    }
    if (p->header[AG_RECORD_FORMAT] < AG_RECORD_FORMAT_VERSION) {
        return true;
    }
    if (p->header[AG_RECORD_LENGTH] < AG_RECORD_EXTRA_BYTES) {
        return false;
    }
    if (f->read(f->ctx, p->address + AG_RECORD_HEADER_BYTES, p->header + AG_RECORD_PROGRAM,
                AG_RECORD_EXTRA_BYTES) != 0) {
        s->read_failed = true;
        return false;
    }
    return true;
}

uint32_t ag_flash_written(const ag_flash *f, uint32_t from, uint32_t to) {
    uint32_t chunk[CHUNK / 4], end = from;
    for (uint32_t at = from; at < to; at += CHUNK) {
        const uint32_t remaining = to - at, bytes = remaining < CHUNK ? remaining : CHUNK;
        if (f->read(f->ctx, at, chunk, bytes) != 0) {
            return to;
        }
        for (uint32_t i = 0; i < bytes / 4; i++) {
            if (chunk[i] != ERASED_WORD) {
                end = at + 4 * (i + 1);
            }
        }
    }
    return end;
}

bool ag_record_next(const ag_flash *f, uint32_t slot, ag_record_cursor *c, ag_record_ref *p, ag_scan *s) {
    const uint32_t start = slot * f->slot_bytes;
    ag_scan of_slot;
    memset(&of_slot, 0, sizeof of_slot);
    bool found = false;
    for (uint32_t at = c->offset; f->slot_bytes - at >= AG_RECORD_HEADER_BYTES; at += 4) {
        found = read_header(f, slot, at, p, &of_slot);
        if (found) {
            c->offset = at + AG_RECORD_HEADER_BYTES + p->header[AG_RECORD_LENGTH];
            break;
        }
        if (c->end == 0) { /* once for a slot: the time stays linear whatever is written in it */
            c->end = ag_flash_written(f, start + at, start + f->slot_bytes) - start;
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

uint32_t ag_slot_end(const ag_flash *f, uint32_t slot, bool *later_format) {
    ag_scan s;
    ag_record_ref p;
    ag_record_cursor c = {AG_SLOT_BYTES, 0};
    uint32_t erase_count;
    const uint32_t format = slot_format(f, slot, &erase_count);
    *later_format = format > AG_SLOT_FORMAT_VERSION;
    if (format != AG_SLOT_FORMAT_VERSION) {
        return 0;
    }
    memset(&s, 0, sizeof s);
    while (ag_record_next(f, slot, &c, &p, &s)) {
    }
    *later_format = s.later_format;
    return c.offset;
}

/* Takes a record of the requested graph into account. Only with its body is its program known to be right. */
static void consider(const ag_flash *f, const ag_record_ref *p, uint32_t program, ag_scan *s) {
    const bool mine = program == AG_ANY_PROGRAM || p->header[AG_RECORD_PROGRAM] == program;
    const bool is_new =
        mine ? !s->found || p->header[AG_RECORD_SEQUENCE] > s->newest.header[AG_RECORD_SEQUENCE]
             : !s->other_program;
    if (!is_new) {
        return;
    }
    if (!ag_record_is_valid(f, p)) {
        s->damaged = true;
    } else if (mine) {
        s->found = true;
        s->newest = *p;
    } else {
        s->other_program = true;
    }
}

ag_scan ag_store_scan(const ag_flash *f, uint32_t graph_id, uint32_t program) {
    ag_scan s;
    memset(&s, 0, sizeof s);
    for (uint32_t slot = 0; slot < f->slots; slot++) {
        uint32_t erase_count;
        ag_record_cursor c = {AG_SLOT_BYTES, 0};
        ag_record_ref p;
        const uint32_t format = slot_format(f, slot, &erase_count);
        s.later_format |= format > AG_SLOT_FORMAT_VERSION;
        if (format != AG_SLOT_FORMAT_VERSION) {
            ag_scan ignored;
            memset(&ignored, 0, sizeof ignored);
            s.damaged |= format == 0 && read_header(f, slot, AG_SLOT_BYTES, &p, &ignored);
            continue;
        }
        while (ag_record_next(f, slot, &c, &p, &s)) {
            if (!s.any_graph || p.header[AG_RECORD_SEQUENCE] > s.sequence) {
                s.any_graph = true;
                s.sequence = p.header[AG_RECORD_SEQUENCE];
                s.last_slot = slot;
            }
            if (p.header[AG_RECORD_FORMAT] < AG_RECORD_FORMAT_VERSION) {
                s.earlier_format = true;
            } else if (p.header[AG_RECORD_GRAPH] != graph_id) {
                s.other_graph = true;
            } else {
                consider(f, &p, program, &s);
            }
        }
    }
    return s;
}
