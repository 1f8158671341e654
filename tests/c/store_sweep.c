/* Tests the store on simulated flash in RAM. Every mode prints one line of results; a wrong result prints an
 * error and exits with 1.
 *
 *   cuts SAVES TORN      power fails after each single operation of SAVES saves
 *   flips BODY           each bit of a record's header, also where another record follows, and BODY random
 *                        bits of its body
 *   wear SAVES           how often each slot is erased
 *   rejections           other models and programs, other formats, flash that is full or worn */
#include "ag_crc32.h"
#include "ag_flash_ram.h"
#include "ag_rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE = 24, SLOTS = 3, SLOT_BYTES = 416, WORDS = SLOTS * SLOT_BYTES / 4, GRAPH = 7, PROGRAM = 11 };

typedef struct state {
    uint32_t word[STATE];
} state;

static uint32_t flash_words[WORDS];

static void fail(const char *what, uint32_t a, uint32_t b) {
    printf("wrong: %s (%u, %u)\n", what, (unsigned)a, (unsigned)b);
    exit(1);
}

/* The state after `steps` steps, which determine every word. */
static state after(uint32_t steps) {
    state s;
    for (uint32_t i = 0; i < STATE; i++) {
        s.word[i] = ag_rand_u32(steps, 0, i);
    }
    return s;
}

static int save_state(const void *memory, ag_write_fn *write, void *ctx) {
    uint32_t head[2] = {STATE, 0};
    return write(ctx, 0, head, 8) != 0 || write(ctx, 8, memory, sizeof(state)) != 0 ? -1 : 0;
}

static int load_state(void *memory, ag_read_fn *read, void *ctx) {
    uint32_t head[2];
    return read(ctx, 0, head, 8) != 0 || head[0] != STATE || read(ctx, 8, memory, sizeof(state)) != 0 ? -1
                                                                                                      : 0;
}

static ag_flash_ram fresh(void) {
    ag_flash_ram r;
    memset(flash_words, 0xff, sizeof flash_words);
    memset(&r, 0, sizeof r);
    r.word = flash_words;
    r.slots = SLOTS;
    r.slot_bytes = SLOT_BYTES;
    return r;
}

static int save(ag_flash_ram *r, uint32_t steps) {
    const ag_flash f = ag_flash_ram_open(r);
    const state s = after(steps);
    ag_checkpoint c = {GRAPH, steps, 0, PROGRAM, 0};
    return ag_store_save(&f, &c, save_state, &s);
}

/* Steps of the checkpoint that loads, 0 without one; its state must match the steps. */
static uint32_t load(ag_flash_ram *r) {
    const ag_flash f = ag_flash_ram_open(r);
    state s;
    ag_checkpoint c = {GRAPH, 0, 0, PROGRAM, 0};
    const int status = ag_store_load(&f, &c, load_state, &s);
    if (status == AG_STORE_ERR_NONE || status == AG_STORE_ERR_FORMAT || status == AG_STORE_ERR_DAMAGED) {
        return 0;
    }
    if (status != AG_STORE_OK) {
        fail("load rejects", (uint32_t)-status, c.steps);
    }
    const state expected = after(c.steps);
    if (memcmp(&s, &expected, sizeof s) != 0) {
        fail("a corrupt state loads", c.steps, c.sequence);
    }
    return c.steps;
}

static void cuts(uint32_t saves, uint32_t torn) {
    static uint32_t before[WORDS];
    ag_flash_ram r = fresh();
    uint32_t trials = 0, kept_new = 0, operations = 0;
    for (uint32_t steps = 1; steps <= saves; steps++) {
        memcpy(before, flash_words, sizeof before);
        r.operations = r.cut_after = r.torn = 0;
        if (save(&r, steps) != AG_STORE_OK || load(&r) != steps) {
            fail("save without a cut", steps, 0);
        }
        static uint32_t done[WORDS];
        memcpy(done, flash_words, sizeof done);
        const uint32_t all = r.operations;
        operations += all;
        for (uint32_t cut = 1; cut <= all; cut++) {
            memcpy(flash_words, before, sizeof before);
            r.operations = 0;
            r.cut_after = cut;
            r.torn = torn == 0 ? 0 : torn + steps * 1000u + cut;
            (void)save(&r, steps);
            r.cut_after = 0;
            const uint32_t found = load(&r);
            if (found != steps && found != steps - 1) {
                fail("after a cut neither the last nor the one before loads", steps, found);
            }
            kept_new += found == steps;
            trials++;
            /* It continues from there, also when the next save is cut at the same operation. */
            if (cut % 3 == 0) {
                r.operations = 0;
                r.cut_after = cut;
                (void)save(&r, steps);
                r.cut_after = 0;
                const uint32_t again = load(&r);
                if (again != steps && again != found) {
                    fail("after a second cut", steps, again);
                }
            }
            if (save(&r, steps) != AG_STORE_OK || load(&r) != steps) {
                fail("save after a cut", steps, cut);
            }
        }
        memcpy(flash_words, done, sizeof done);
    }
    printf("%u saves, %u operations, %u cuts: %u load the new one, %u the one before, 0 corrupt, 0 lost\n",
           (unsigned)saves, (unsigned)operations, (unsigned)trials, (unsigned)kept_new,
           (unsigned)(trials - kept_new));
}

/* The only checkpoint is damaged at bit `bit`. */
static void expect_damage(ag_flash_ram *r, uint32_t bit) {
    const ag_flash f = ag_flash_ram_open(r);
    state s;
    ag_checkpoint c = {GRAPH, 0, 0, PROGRAM, 0};
    if (ag_store_load(&f, &c, load_state, &s) != AG_STORE_ERR_DAMAGED ||
        ag_store_load_any(&f, &c, load_state, &s) != AG_STORE_ERR_DAMAGED) {
        fail("a flipped bit is not noticed", bit, 0);
    }
}

static void flips(uint32_t body) {
    ag_flash_ram r = fresh();
    (void)save(&r, 1);
    for (uint32_t bit = 0; bit < 16 * 8; bit++) { /* the slot's header */
        flash_words[bit / 32] ^= 1u << bit % 32;
        expect_damage(&r, bit);
        flash_words[bit / 32] ^= 1u << bit % 32;
    }
    const uint32_t start = 16 * 8, header = 32 * 8,
                   bits = (8 + 8 + sizeof(state)) * 8; /* program and round, then what save_state writes */
    for (uint32_t i = 0; i < header + body; i++) {
        const uint32_t bit = start + (i < header ? i : header + ag_rand_u32(3, 0, i) % bits);
        flash_words[bit / 32] ^= 1u << bit % 32;
        expect_damage(&r, i);
        flash_words[bit / 32] ^= 1u << bit % 32;
    }
    if (load(&r) != 1) {
        fail("repaired, it loads", 0, 0);
    }
    static uint32_t two[WORDS];
    (void)save(&r, 2);
    memcpy(two, flash_words, sizeof two);
    for (uint32_t i = 0; i < header; i++) {
        flash_words[(start + i) / 32] ^= 1u << (start + i) % 32;
        if (load(&r) != 2) {
            fail("a record after a damaged header does not load", i, load(&r));
        }
        if (save(&r, 3) != AG_STORE_OK || load(&r) != 3) {
            fail("save after a damaged header", i, load(&r));
        }
        memcpy(flash_words, two, sizeof two);
    }
    printf("%u bits of the header, %u of the body: all detected\n", (unsigned)header, (unsigned)body);
}

static void wear(uint32_t saves) {
    ag_flash_ram r = fresh();
    const ag_flash f = ag_flash_ram_open(&r);
    for (uint32_t steps = 1; steps <= saves; steps++) {
        if (save(&r, steps) != AG_STORE_OK) {
            fail("save", steps, 0);
        }
    }
    uint32_t low = ~0u, high = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const uint32_t n = ag_store_erased(&f, slot);
        low = n < low ? n : low;
        high = n > high ? n : high;
    }
    printf("%u saves: each slot erased %u to %u times\n", (unsigned)saves, (unsigned)low, (unsigned)high);
}

static void expect(const char *what, int status, int expected) {
    if (status != expected) {
        printf("wrong: %s: %s, not %s\n", what, ag_store_strstatus(status), ag_store_strstatus(expected));
        exit(1);
    }
}

static int save_changing(const void *memory, ag_write_fn *write, void *ctx) {
    static uint32_t calls;
    calls++;
    (void)memory;
    return write(ctx, 0, &calls, 4);
}

static int save_odd(const void *memory, ag_write_fn *write, void *ctx) {
    return write(ctx, 0, memory, 3);
}

static int save_large(const void *memory, ag_write_fn *write, void *ctx) {
    for (uint32_t at = 0; at < SLOT_BYTES; at += 4) {
        if (write(ctx, at, memory, 4) != 0) {
            return -1;
        }
    }
    return 0;
}

static int load_nothing(void *memory, ag_read_fn *read, void *ctx) {
    (void)memory;
    uint8_t byte;
    return read(ctx, 0, &byte, 1) != 0 || read(ctx, 104, &byte, 1) == 0 || read(ctx, ~0u, &byte, 2) == 0 ? 0
                                                                                                         : -1;
}

/* Sets the format of the header that starts at word `first`, and its checksum after `count` words. */
static void set_format(uint32_t first, uint32_t count, uint32_t format) {
    flash_words[first + 1] = format;
    flash_words[first + count] = ag_crc32(0, flash_words + first, 4 * count);
}

/* Records are found after one whose header is damaged: where another slot is of a later format, and where the
 * body of the damaged one looks erased. */
static void later_records(void) {
    ag_flash_ram r = fresh();
    const ag_flash f = ag_flash_ram_open(&r);
    const uint32_t slot_header[3] = {0x53534741u, 2, 1};
    memcpy(flash_words, slot_header, sizeof slot_header);
    flash_words[3] = ag_crc32(0, flash_words, sizeof slot_header);
    (void)save(&r, 1);
    (void)save(&r, 2);
    flash_words[SLOT_BYTES / 4 + 4 + 5] ^= 1; /* the first header in the second slot */
    if (load(&r) != 2) {
        fail("a record in a slot after one of a later format", load(&r), 2);
    }

    r = fresh();
    state blank;
    memset(&blank, 0xff, sizeof blank);
    ag_checkpoint c = {GRAPH, 1, 0, PROGRAM, 0};
    expect("a body of ones", ag_store_save(&f, &c, save_state, &blank), AG_STORE_OK);
    (void)save(&r, 2);
    flash_words[4 + 5] ^= 1;
    if (load(&r) != 2) {
        fail("a record after a body that looks erased", load(&r), 2);
    }
}

/* A checkpoint of another program is loaded only on request, and the first save of this program
 * leaves it in the flash. */
static void other_programs(void) {
    ag_flash_ram r = fresh();
    const ag_flash f = ag_flash_ram_open(&r);
    state s = after(5);
    ag_checkpoint other = {GRAPH, 5, 0, PROGRAM + 1, 0}, c = {GRAPH, 0, 0, PROGRAM, 0};
    for (uint32_t i = 0; i < 4; i++) { /* the last one begins the next slot */
        expect("another program saves", ag_store_save(&f, &other, save_state, &s), AG_STORE_OK);
    }
    expect("another program", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_PROGRAM);
    flash_words[4 + 10] ^= 1; /* a body that is damaged shows no program */
    expect("another program still", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_PROGRAM);
    expect("of any program", ag_store_load_any(&f, &c, load_state, &s), AG_STORE_OK);
    const state expected = after(5);
    if (c.steps != 5 || c.program != PROGRAM + 1 || memcmp(&s, &expected, sizeof s) != 0) {
        fail("the checkpoint of another program", c.steps, c.program);
    }
    for (uint32_t cut = 1; cut < 60; cut++) { /* while the first of this program is written */
        static uint32_t kept[WORDS];
        memcpy(kept, flash_words, sizeof kept);
        r.operations = 0;
        r.cut_after = cut;
        (void)save(&r, 6);
        r.cut_after = 0;
        c.program = PROGRAM;
        expect("of any program after a cut", ag_store_load_any(&f, &c, load_state, &s), AG_STORE_OK);
        memcpy(flash_words, kept, sizeof kept);
    }
    c = (ag_checkpoint){GRAPH, 6, 0, PROGRAM, 3};
    expect("this program saves", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    expect("another program saves", ag_store_save(&f, &other, save_state, &s), AG_STORE_OK);
    c.round = 0;
    expect("this program", ag_store_load(&f, &c, load_state, &s), AG_STORE_OK);
    if (c.steps != 6 || c.program != PROGRAM || c.round != 3) {
        fail("the checkpoint of this program", c.steps, c.round);
    }
}

/* Records of format 1 are not loaded; new ones follow them. */
static void earlier_records(void) {
    ag_flash_ram r = fresh();
    const ag_flash f = ag_flash_ram_open(&r);
    state s = after(1);
    ag_checkpoint c = {GRAPH, 1, 0, PROGRAM, 0};
    (void)save(&r, 1);
    set_format(4, 7, 1);
    expect("an earlier format", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_EARLIER);
    expect("of any program", ag_store_load_any(&f, &c, load_state, &s), AG_STORE_ERR_EARLIER);
    expect("a save after it", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    if (c.sequence != 2 || load(&r) != 1 || flash_words[5] != 1) {
        fail("a record after one of an earlier format", c.sequence, flash_words[5]);
    }
}

static void rejections(void) {
    static uint32_t kept[WORDS];
    ag_flash_ram r = fresh();
    ag_flash f = ag_flash_ram_open(&r);
    state s = after(1);
    ag_checkpoint c = {GRAPH, 1, 0, PROGRAM, 0};
    expect("empty flash", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_NONE);
    expect("a body that changes", ag_store_save(&f, &c, save_changing, &s), AG_STORE_ERR_SAVE);
    expect("a body of odd length", ag_store_save(&f, &c, save_odd, &s), AG_STORE_ERR_SAVE);
    expect("a body that is too large", ag_store_save(&f, &c, save_large, &s), AG_STORE_ERR_FULL);
    f.slots = 1;
    expect("one slot", ag_store_save(&f, &c, save_state, &s), AG_STORE_ERR_FULL);
    f.slots = SLOTS;
    expect("a save", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    expect("the consumer rejects it", ag_store_load(&f, &c, load_nothing, &s), AG_STORE_ERR_LOAD);
    c.graph_id = GRAPH + 1;
    expect("another model", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_GRAPH);
    for (uint32_t i = 0; i < 20;
         i++) { /* another model uses the flash, and the first one's record is erased */
        expect("another model saves", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    }
    expect("another model", ag_store_load(&f, &c, load_state, &s), AG_STORE_OK);
    c.graph_id = GRAPH;
    expect("the first one", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_GRAPH);

    r = fresh();
    f = ag_flash_ram_open(&r);
    expect("a save", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    set_format(4, 7, 3); /* the record */
    expect("a later format", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_FORMAT);
    for (uint32_t i = 0; i < 20; i++) { /* its data is not erased */
        expect("a save in another slot", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    }
    if (flash_words[5] != 3) {
        fail("a record of a later format is gone", flash_words[5], 0);
    }

    r = fresh();
    f = ag_flash_ram_open(&r);
    for (uint32_t i = 0; i < 9; i++) {
        expect("a save", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        set_format(slot * SLOT_BYTES / 4, 3, 2); /* the slots */
    }
    memcpy(kept, flash_words, sizeof kept);
    expect("slots of a later format", ag_store_load(&f, &c, load_state, &s), AG_STORE_ERR_FORMAT);
    expect("no slot is free", ag_store_save(&f, &c, save_state, &s), AG_STORE_ERR_FORMAT);
    if (memcmp(kept, flash_words, sizeof kept) != 0) {
        fail("slots of a later format are erased", 0, 0);
    }

    later_records();
    earlier_records();
    other_programs();

    r = fresh();
    f = ag_flash_ram_open(&r);
    expect("a save", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    r.worn_from = 40; /* the rest of the first slot, and all others */
    r.worn_to = WORDS;
    c.steps = 2;
    expect("worn flash", ag_store_save(&f, &c, save_state, &s), AG_STORE_ERR_WORN);
    if (load(&r) != 1) {
        fail("on worn flash the last good one stays", 0, 0);
    }
    r.worn_to = SLOT_BYTES / 4; /* only the first slot is worn */
    expect("the next slot is used", ag_store_save(&f, &c, save_state, &s), AG_STORE_OK);
    printf("rejections as expected\n");
}

int main(int argc, char **argv) {
    const uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (argc > 3 && strcmp(argv[1], "cuts") == 0) {
        cuts(n, (uint32_t)strtoul(argv[3], NULL, 10));
    } else if (argc > 2 && strcmp(argv[1], "flips") == 0) {
        flips(n);
    } else if (argc > 2 && strcmp(argv[1], "wear") == 0) {
        wear(n);
    } else {
        rejections();
    }
    return 0;
}
