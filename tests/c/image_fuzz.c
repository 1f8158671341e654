/* Fuzz test of the firmware's readers of flash and files: images of the store, and sets of samples, that
 * others have made, with checksums that fit. Nothing is read or written outside the image, and the time is
 * linear in its size.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined. Otherwise (AG_STANDALONE) a seeded run:
 * image_fuzz INPUTS SEED */
#include "ag_crc32.h"
#include "ag_flash_ram.h"
#include "ag_rng.h"
#include "ag_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, SLOT_BYTES = 4096, WORDS = SLOTS * SLOT_BYTES / 4, STATE = 12, GRAPH = 7, PROGRAM = 11 };
enum { SLOT_HEADER = 4, LENGTH = 4, BODY_CRC = 6, HEADER_CRC = 7, HEADER_WORDS = 8, MOST_READ = 32 };

static unsigned long loaded, opened;
static uint32_t words[WORDS], state[STATE];
static ag_flash_ram ram;
static ag_flash plain;
static unsigned long read_bytes;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static void fail(const char *what, uint32_t a, uint32_t b) {
    fprintf(stderr, "wrong: %s (%u, %u)\n", what, (unsigned)a, (unsigned)b);
    abort();
}

static void check_inside(uint32_t address, uint32_t bytes) {
    if (address > sizeof words || bytes > sizeof words - address) {
        fail("outside the flash", address, bytes);
    }
}

static int read_flash(void *ctx, uint32_t address, void *data, uint32_t bytes) {
    check_inside(address, bytes);
    read_bytes += bytes;
    return plain.read(ctx, address, data, bytes);
}

static int program_flash(void *ctx, uint32_t address, const void *data, uint32_t bytes) {
    check_inside(address, bytes);
    return plain.program(ctx, address, data, bytes);
}

static int erase_flash(void *ctx, uint32_t address) {
    check_inside(address, SLOT_BYTES);
    return plain.erase(ctx, address);
}

static int save_state(const void *memory, ag_write_fn *write, void *ctx) {
    return write(ctx, 0, memory, sizeof state);
}

/* The image gives the size: bytes beyond the body cannot be read. */
static int load_state(void *memory, ag_read_fn *read, void *ctx) {
    uint8_t byte;
    (void)read(ctx, UINT32_MAX, &byte, 1);
    return read(ctx, 0, memory, sizeof state);
}

/* One change of the image: a word, then checksums that fit it, as `how` says. */
static void change(uint32_t at, uint32_t value, uint32_t how) {
    words[at] = value;
    if (how & 1u && at + SLOT_HEADER <= WORDS) {
        words[at + SLOT_HEADER - 1] = ag_crc32(0, words + at, 4 * (SLOT_HEADER - 1));
    }
    if (at + HEADER_WORDS > WORDS) {
        return;
    }
    if (how & 2u) {
        const uint32_t record[HEADER_WORDS] = {0x52534741u, 2, GRAPH, value, (value >> 8) % 256 * 4, 1};
        memcpy(words + at, record, sizeof record);
    }
    const uint32_t room = 4 * (WORDS - at - HEADER_WORDS);
    if (how & 4u && words[at + LENGTH] <= room) {
        words[at + BODY_CRC] = ag_crc32(0, words + at + HEADER_WORDS, words[at + LENGTH]);
    }
    if (how & 6u) {
        words[at + HEADER_CRC] = ag_crc32(0, words + at, 4 * HEADER_CRC);
    }
}

static void check_image(const uint8_t *data, size_t size) {
    memset(words, 0xff, sizeof words);
    memset(&ram, 0, sizeof ram);
    ram.word = words;
    ram.slots = SLOTS;
    ram.slot_bytes = SLOT_BYTES;
    plain = ag_flash_ram_open(&ram);
    const ag_flash flash = {read_flash, program_flash, erase_flash, &ram, SLOTS, SLOT_BYTES};
    ag_checkpoint c = {GRAPH, 3, 0, PROGRAM, 0};
    (void)ag_store_save(&flash, &c, save_state, state);
    (void)ag_store_save(&flash, &c, save_state, state);
    for (; size >= 7; data += 7, size -= 7) {
        uint32_t value;
        memcpy(&value, data + 2, 4);
        change((data[0] | (uint32_t)data[1] << 8) % WORDS, value, data[6]);
    }
    read_bytes = 0;
    const int status = ag_store_load(&flash, &c, load_state, state);
    loaded += status == AG_STORE_OK;
    if (read_bytes > MOST_READ * sizeof words) {
        fail("bytes read by a load", (uint32_t)read_bytes, 0);
    }
    (void)ag_store_load_any(&flash, &c, load_state, state);
    for (uint32_t i = 0; i < 3; i++) {
        (void)ag_store_save(&flash, &c, save_state, state);
    }
    if (*ag_store_strstatus(status) == '\0') {
        fail("no text of a status", (uint32_t)-status, 0);
    }
}

typedef struct source {
    const uint8_t *data;
    size_t size;
} source;

static int read_source(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    const source *s = (const source *)ctx;
    if (offset > s->size || bytes > s->size - offset) {
        return -1;
    }
    memcpy(data, s->data + offset, bytes);
    return 0;
}

static void check_samples(const uint8_t *data, size_t size) {
    enum { HEADER = 48, MOST = 256 };
    static uint8_t set[4096], record[MOST];
    source from = {set, size < sizeof set ? size : sizeof set};
    memcpy(set, data, from.size);
    if (from.size >= HEADER) {
        static const uint8_t begin[12] = {'A', 'G', 'S', '1', 1, 0, 0, 0, HEADER, 0, 0, 0};
        memcpy(set, begin, sizeof begin);
        uint32_t head[6]; /* bytes of a record, of its input and label; training and test records; epochs */
        memcpy(head, set + 12, sizeof head);
        if (set[47] & 1u) {
            head[0] = 1 + head[0] % 64;
            head[1] %= head[0];
            head[2] = head[0] - head[1];
        }
        if (set[47] & 2u) {
            head[3] %= 100;
            head[4] %= 100;
        }
        if (set[47] & 4u) {
            head[5] %= 100;
        }
        memcpy(set + 12, head, sizeof head);
        const uint32_t crc = ag_crc32(0, set, HEADER - 4);
        memcpy(set + HEADER - 4, &crc, 4);
    }
    ag_samples s;
    memset(&s, 0, sizeof s);
    if (ag_samples_open_source(&s, read_source, &from) != AG_SAMPLES_OK) {
        return;
    }
    opened++;
    if (s.input_bytes + s.label_bytes != s.record_bytes || s.record_bytes == 0 ||
        (uint64_t)s.epochs * s.train > UINT32_MAX || s.epochs > AG_SAMPLES_MOST_EPOCHS) {
        fail("a header", s.record_bytes, s.epochs);
    }
    if (s.record_bytes > sizeof record) {
        return; /* programs compare with the size of theirs */
    }
    for (uint32_t i = 0; i < 100 && ag_samples_next(&s, record) == AG_SAMPLES_OK; i++) {
    }
    if (ag_samples_seek(&s, s.train + s.test) != AG_SAMPLES_OK ||
        ag_samples_next(&s, record) != AG_SAMPLES_ERR_END) {
        fail("the end of the records", s.train, s.test);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] % 2 == 0) {
        check_image(data + 1, size - 1);
    } else if (size > 0) {
        check_samples(data + 1, size - 1);
    }
    return 0;
}

static void report(void) {
    fprintf(stderr, "%lu images loaded, %lu sets opened\n", loaded, opened);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return atexit(report);
}

#if defined(AG_STANDALONE)
int main(int argc, char **argv) {
    const uint32_t inputs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    const uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    static uint8_t input[512];
    for (uint32_t run = 0; run < inputs; run++) {
        const uint32_t bytes = 1 + ag_rand_u32(seed, run, 0) % sizeof input;
        for (uint32_t i = 0; i < bytes; i++) {
            const uint32_t drawn = ag_rand_u32(seed, run, i + 1);
            input[i] = drawn % 4 == 0 || i % 4 != 0 ? (uint8_t)(drawn >> 8) & (uint8_t)(drawn >> 16) : 0;
        }
        input[0] = (uint8_t)run;
        (void)LLVMFuzzerTestOneInput(input, bytes);
    }
    printf("%lu images loaded, %lu sets opened\n", loaded, opened);
    return 0;
}
#endif
