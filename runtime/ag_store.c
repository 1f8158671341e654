#include "ag_store.h"

#include "ag_crc32.h"

#include <stdbool.h>
#include <string.h>

/* Words of a slot's header: magic, format, times erased, CRC-32 of these. It is programmed when the erasure
 * has ended; a slot without one is erased before it is used. */
enum { SLOT_MAGIC, SLOT_FORMAT, SLOT_ERASED, SLOT_CRC, SLOT_WORDS };
/* Words of a record's header; the body follows it. */
enum { MAGIC, FORMAT, GRAPH, SEQUENCE, LENGTH, STEPS, BODY_CRC, HEADER_CRC, HEADER_WORDS };

#define SLOT_IS 0x53534741u   /* "AGSS" */
#define RECORD_IS 0x52534741u /* "AGSR" */
#define VERSION 1u
#define BLANK 0xffffffffu

enum { SLOT_BYTES = 4 * SLOT_WORDS, HEADER_BYTES = 4 * HEADER_WORDS, CHUNK = 64 };

typedef struct place {
    uint32_t slot, address; /* of the record's header, from the region's start */
    uint32_t header[HEADER_WORDS];
} place;

/* What one look through the region finds. */
typedef struct survey {
    bool found;        /* a good record of the graph that is asked for */
    bool any, other;   /* a record with a good header; one of another graph */
    place newest;      /* of that graph */
    uint32_t last;     /* slot of the newest record with a good header, of any graph */
    uint32_t sequence; /* the highest */
    bool later;        /* a slot or record of a later format */
    bool failed;       /* the flash could not be read */
} survey;

static uint32_t crc_of(const uint32_t *words, uint32_t count) {
    return ag_crc32(0, words, 4u * count);
}

/* The format of a slot, 0 where it has no good header; and how often it has been erased. */
static uint32_t slot_format(const ag_flash *f, uint32_t slot, uint32_t *erased) {
    uint32_t h[SLOT_WORDS];
    *erased = 0;
    if (f->read(f->ctx, slot * f->slot_bytes, h, SLOT_BYTES) != 0 || h[SLOT_MAGIC] != SLOT_IS ||
        h[SLOT_CRC] != crc_of(h, SLOT_CRC)) {
        return 0;
    }
    *erased = h[SLOT_ERASED];
    return h[SLOT_FORMAT];
}

static bool slot_is_ready(const ag_flash *f, uint32_t slot, uint32_t *erased) {
    return slot_format(f, slot, erased) == VERSION;
}

uint32_t ag_store_erased(const ag_flash *flash, uint32_t slot) {
    uint32_t erased;
    (void)slot_is_ready(flash, slot, &erased);
    return erased;
}

static bool body_is_good(const ag_flash *f, const place *p) {
    uint32_t chunk[CHUNK / 4], crc = 0;
    for (uint32_t at = 0; at < p->header[LENGTH]; at += CHUNK) {
        const uint32_t left = p->header[LENGTH] - at, bytes = left < CHUNK ? left : CHUNK;
        if (f->read(f->ctx, p->address + HEADER_BYTES + at, chunk, bytes) != 0) {
            return false;
        }
        crc = ag_crc32(crc, chunk, bytes);
    }
    return crc == p->header[BODY_CRC];
}

/* Read the record's header at `offset` of a slot: whether there is one. */
static bool read_header(const ag_flash *f, uint32_t slot, uint32_t offset, place *p, survey *s) {
    if (f->slot_bytes - offset < HEADER_BYTES) {
        return false;
    }
    p->slot = slot;
    p->address = slot * f->slot_bytes + offset;
    if (f->read(f->ctx, p->address, p->header, HEADER_BYTES) != 0) {
        s->failed = true;
        return false;
    }
    if (p->header[MAGIC] != RECORD_IS || p->header[HEADER_CRC] != crc_of(p->header, HEADER_CRC)) {
        return false;
    }
    if (p->header[FORMAT] > VERSION) {
        s->later = true;
        return false;
    }
    return p->header[FORMAT] == VERSION && p->header[LENGTH] <= f->slot_bytes - offset - HEADER_BYTES &&
           p->header[LENGTH] % 4 == 0;
}

/* Offset behind the last record of a slot that has a good header; whether one of a later format follows. */
static uint32_t end_of_chain(const ag_flash *f, uint32_t slot, bool *later) {
    survey s;
    place p;
    uint32_t offset = SLOT_BYTES;
    memset(&s, 0, sizeof s);
    while (read_header(f, slot, offset, &p, &s)) {
        offset += HEADER_BYTES + p.header[LENGTH];
    }
    *later = s.later;
    return offset;
}

/* Whether later programs have left something in a slot: it is theirs. */
static bool has_later(const ag_flash *f, uint32_t slot) {
    uint32_t erased;
    bool later = slot_format(f, slot, &erased) > VERSION;
    if (!later && slot_is_ready(f, slot, &erased)) {
        (void)end_of_chain(f, slot, &later);
    }
    return later;
}

static survey look(const ag_flash *f, uint32_t graph_id) {
    survey s;
    memset(&s, 0, sizeof s);
    for (uint32_t slot = 0; slot < f->slots; slot++) {
        uint32_t erased, offset = SLOT_BYTES;
        place p;
        const uint32_t format = slot_format(f, slot, &erased);
        s.later |= format > VERSION;
        if (format != VERSION) {
            continue;
        }
        while (read_header(f, slot, offset, &p, &s)) {
            if (!s.any || p.header[SEQUENCE] > s.sequence) {
                s.any = true;
                s.sequence = p.header[SEQUENCE];
                s.last = slot;
            }
            s.other |= p.header[GRAPH] != graph_id;
            if (p.header[GRAPH] == graph_id && (!s.found || p.header[SEQUENCE] > s.newest.header[SEQUENCE]) &&
                body_is_good(f, &p)) {
                s.found = true;
                s.newest = p;
            }
            offset += HEADER_BYTES + p.header[LENGTH];
        }
    }
    return s;
}

/* The body as it passes by: its checksum, and in the second pass into the flash. */
typedef struct body {
    const ag_flash *flash; /* NULL in the first pass */
    uint32_t address, length, crc;
} body;

static int take(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {
    body *b = (body *)ctx;
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

static bool is_blank(const ag_flash *f, uint32_t address, uint32_t bytes) {
    uint32_t chunk[CHUNK / 4];
    for (uint32_t at = 0; at < bytes; at += CHUNK) {
        const uint32_t left = bytes - at, part = left < CHUNK ? left : CHUNK;
        if (f->read(f->ctx, address + at, chunk, part) != 0) {
            return false;
        }
        for (uint32_t i = 0; i < part / 4; i++) {
            if (chunk[i] != BLANK) {
                return false;
            }
        }
    }
    return true;
}

/* Erase a slot and say so in its header, as often as it has been. */
static bool renew(const ag_flash *f, uint32_t slot) {
    uint32_t h[SLOT_WORDS], back[SLOT_WORDS], erased;
    const uint32_t address = slot * f->slot_bytes;
    (void)slot_is_ready(f, slot, &erased);
    if (f->erase(f->ctx, address) != 0 || !is_blank(f, address, f->slot_bytes)) {
        return false;
    }
    h[SLOT_MAGIC] = SLOT_IS;
    h[SLOT_FORMAT] = VERSION;
    h[SLOT_ERASED] = erased + 1;
    h[SLOT_CRC] = crc_of(h, SLOT_CRC);
    return f->program(f->ctx, address, h, SLOT_BYTES) == 0 &&
           f->read(f->ctx, address, back, SLOT_BYTES) == 0 && memcmp(h, back, SLOT_BYTES) == 0;
}

/* Write one record and read it back. AG_STORE_ERR_WORN: another place may do. */
static int append(const ag_flash *f, place *p, ag_save_fn *save, const void *memory) {
    uint32_t back[HEADER_WORDS];
    body b = {f, p->address + HEADER_BYTES, 0, 0};
    if (f->program(f->ctx, p->address, p->header, HEADER_BYTES) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (save(memory, take, &b) != 0) {
        return AG_STORE_ERR_WORN;
    }
    if (b.length != p->header[LENGTH] || b.crc != p->header[BODY_CRC]) {
        return AG_STORE_ERR_SAVE;
    }
    if (f->read(f->ctx, p->address, back, HEADER_BYTES) != 0 || memcmp(back, p->header, HEADER_BYTES) != 0 ||
        !body_is_good(f, p)) {
        return AG_STORE_ERR_WORN;
    }
    return AG_STORE_OK;
}

int ag_store_save(const ag_flash *flash, ag_checkpoint *c, ag_save_fn *save, const void *memory) {
    body size = {NULL, 0, 0, 0};
    if (save(memory, take, &size) != 0) {
        return AG_STORE_ERR_SAVE;
    }
    if (flash->slots < 2 || flash->slot_bytes < SLOT_BYTES + HEADER_BYTES ||
        size.length > flash->slot_bytes - SLOT_BYTES - HEADER_BYTES) {
        return AG_STORE_ERR_FULL;
    }
    const survey s = look(flash, c->graph_id);
    if (s.failed) {
        return AG_STORE_ERR_FLASH;
    }
    place p;
    p.header[MAGIC] = RECORD_IS;
    p.header[FORMAT] = VERSION;
    p.header[GRAPH] = c->graph_id;
    p.header[SEQUENCE] = s.sequence + 1;
    p.header[LENGTH] = size.length;
    p.header[STEPS] = c->steps;
    p.header[BODY_CRC] = size.crc;
    p.header[HEADER_CRC] = crc_of(p.header, HEADER_CRC);
    const uint32_t need = HEADER_BYTES + size.length;
    /* The slot in use, as long as there is room in it; then the others, round about. */
    int failure = AG_STORE_ERR_WORN;
    for (uint32_t i = 0; i < flash->slots; i++) {
        uint32_t erased;
        bool later;
        p.slot = ((s.any ? s.last : 0) + i) % flash->slots;
        if (has_later(flash, p.slot)) {
            failure = AG_STORE_ERR_FORMAT;
            continue;
        }
        for (uint32_t fresh = 0; fresh < 2; fresh++) {
            uint32_t offset = SLOT_BYTES;
            if (fresh == 0) {
                if (!slot_is_ready(flash, p.slot, &erased)) {
                    continue;
                }
                offset = end_of_chain(flash, p.slot, &later);
                if (flash->slot_bytes - offset < need ||
                    !is_blank(flash, p.slot * flash->slot_bytes + offset, need)) {
                    continue;
                }
            } else if ((s.found && p.slot == s.newest.slot) || !renew(flash, p.slot)) {
                continue;
            }
            p.address = p.slot * flash->slot_bytes + offset;
            const int status = append(flash, &p, save, memory);
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

static int give(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    const body *b = (const body *)ctx;
    if (offset > b->length || bytes > b->length - offset) {
        return -1;
    }
    return b->flash->read(b->flash->ctx, b->address + offset, data, bytes);
}

int ag_store_load(const ag_flash *flash, ag_checkpoint *c, ag_load_fn *load, void *memory) {
    const survey s = look(flash, c->graph_id);
    if (!s.found) {
        return s.failed  ? AG_STORE_ERR_FLASH
               : s.later ? AG_STORE_ERR_FORMAT
               : s.other ? AG_STORE_ERR_GRAPH
                         : AG_STORE_ERR_NONE;
    }
    body b = {flash, s.newest.address + HEADER_BYTES, s.newest.header[LENGTH], 0};
    if (load(memory, give, &b) != 0) {
        return AG_STORE_ERR_LOAD;
    }
    c->steps = s.newest.header[STEPS];
    c->sequence = s.newest.header[SEQUENCE];
    return AG_STORE_OK;
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
        return "the model refused the checkpoint";
    case AG_STORE_ERR_NO_FLASH:
        return "this board has no flash for checkpoints";
    default:
        return "unknown status";
    }
}
