/* Fuzz test of the link. A host trains a model whose state is a hash, over a line that drops, duplicates,
 * truncates, delays, corrupts and replays frames; or the fuzzer sends well-formed but meaningless requests.
 * No step may be executed twice, skipped, or executed on data other than the host's, and afterwards the link
 * works.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined. Otherwise (AG_STANDALONE) a seeded run:
 * link_fuzz FRAMES SEED */
#include "ag_crc32.h"
#include "ag_flash_ram.h"
#include "ag_frame.h"
#include "ag_link.h"
#include "ag_rng.h"
#include "link_fuzz_line.h"
#include "link_fuzz_model.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 6, SLOT = 256 };

static unsigned long trained; /* steps */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- the board, and a minimal host */

typedef struct test_bench {
    memory m;
    ag_link board;
    ag_flash_ram ram;
    ag_flash flash;
    uint32_t word[2 * SLOT / 4];
    source errors;
    line up, down; /* to the board, to the host */
    uint16_t session;
    uint32_t sequence, nonce;
    uint8_t in[LONGEST]; /* host: the reply being received */
    uint32_t in_bytes;
} test_bench;

static void fail(const char *what, uint32_t a, uint32_t b) {
    fprintf(stderr, "wrong: %s (%u, %u)\n", what, (unsigned)a, (unsigned)b);
    abort();
}

static void reply_sent(void *ctx, const uint8_t *data, uint32_t bytes) {
    test_bench *w = (test_bench *)ctx;
    transmit(&w->down, &w->errors, data, bytes);
}

static void check_fences(const memory *m) {
    if (m->before != 0xfeedu || m->after != 0xfeedu || m->beyond != 0xfeedu || m->end != 0xfeedu) {
        fail("a guard word is overwritten", 0, 0);
    }
}

/* Reads received bytes: the payload's length when the reply to (request, sequence) has arrived, otherwise -1.
 */
static int32_t reply_in(test_bench *w, uint32_t request, uint32_t sequence, uint8_t *reply) {
    int32_t found = -1;
    for (uint32_t i = 0; i < w->down.out_bytes; i++) {
        if (w->down.out[i] != 0) {
            if (w->in_bytes < sizeof w->in) {
                w->in[w->in_bytes++] = w->down.out[i];
            }
            continue;
        }
        const uint32_t bytes = ag_frame_decode(w->in, w->in_bytes);
        w->in_bytes = 0;
        if (ag_frame_is_good(w->in, bytes) && w->in[0] == (request | AG_LINK_REPLY) &&
            ag_get32(w->in + AG_FRAME_SEQUENCE) == sequence) {
            memcpy(reply, w->in, bytes);
            found = (int32_t)bytes - AG_LINK_HEADER - 4;
        }
    }
    w->down.out_bytes = 0;
    return found;
}

/* Repeats one request until it is answered: the reply's length, or -1 when no reply arrived. */
static int32_t exchange(test_bench *w, uint32_t request, uint32_t sequence, const uint8_t *payload,
                        uint32_t bytes, uint8_t *reply) {
    uint8_t frame[AG_LINK_FRAME], encoded[AG_LINK_ENCODED + 1];
    for (uint32_t attempt = 0, clean = 0; clean < 10; attempt++, clean += w->errors.left == 0) {
        ag_frame_fill(frame, request, 0, w->session, sequence);
        memcpy(frame + AG_LINK_HEADER, payload, bytes);
        encoded[0] = 0; /* terminates a partial frame */
        const uint32_t length = ag_frame_encode(encoded + 1, frame, ag_frame_seal(frame, bytes));
        transmit(&w->up, &w->errors, attempt == 0 ? encoded + 1 : encoded,
                 attempt == 0 ? length : length + 1);
        const uint32_t sent = w->up.out_bytes;
        w->up.out_bytes = 0;
        const uint32_t cut = sent == 0 ? 0 : next_random(&w->errors) % (sent + 1);
        ag_link_receive(&w->board, w->up.out, cut);
        ag_link_receive(&w->board, w->up.out + cut, sent - cut);
        check_fences(&w->m);
        const int32_t got = reply_in(w, request, sequence, reply);
        if (got >= 0) {
            return got;
        }
    }
    return -1;
}

/* Starts a session: the board's step count. */
static uint32_t hello(test_bench *w) {
    static const uint8_t version[4] = {AG_LINK_VERSION, 0, 0, 0};
    uint8_t reply[AG_LINK_FRAME];
    const int32_t got = exchange(w, AG_LINK_HELLO, ++w->nonce, version, 4, reply);
    if (got != AG_LINK_PAYLOAD || reply[AG_FRAME_STATUS] != 0 ||
        ag_get32(reply + AG_LINK_HEADER + 4) != model.graph_id) {
        fail("no answer to HELLO", w->nonce, (uint32_t)got);
    }
    w->session = (uint16_t)ag_get16(reply + AG_FRAME_SESSION);
    w->sequence = 0;
    return ag_get32(reply + AG_LINK_HEADER + 24);
}

/* The next request of the session: its status; -1 where the session fails. */
static int32_t request(test_bench *w, uint32_t number, const uint8_t *payload, uint32_t bytes,
                       uint8_t *reply) {
    if (exchange(w, number, w->sequence + 1, payload, bytes, reply) < 0) {
        return -1;
    }
    w->sequence++;
    return (int8_t)reply[AG_FRAME_STATUS];
}

static void fill(memory *m, uint32_t job) {
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
        m->x[i / WIDTH][i % WIDTH] = (float)(ag_rand_u32(job, 0, i) & 255u) / 255.0f;
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        m->label[i] = (uint8_t)(ag_rand_u32(job, 1, i) % CLASSES);
    }
}

static int32_t rows_of(uint32_t job) {
    return 1 + (int32_t)(job % ROWS);
}

static float rate_of(uint32_t job) {
    return 0.25f + (float)job;
}

/* Writes the job's data; half of it as bytes that become floats. */
static int32_t send_data(test_bench *w, const memory *data, uint32_t job, uint8_t *reply) {
    uint8_t payload[AG_LINK_PAYLOAD];
    const uint32_t n = (uint32_t)rows_of(job), per = job % 2 == 0 ? 11u : 44u;
    for (uint32_t at = 0; at < n * WIDTH; at += per) {
        const uint32_t count = n * WIDTH - at < per ? n * WIDTH - at : per;
        ag_put32(payload, (job % 2 == 0 ? 0u : 1u << 24) | at * 4u);
        for (uint32_t i = 0; i < count; i++) {
            const float x = (&data->x[0][0])[at + i];
            if (job % 2 == 0) {
                ag_put_f32(payload + 4 + 4 * i, x);
            } else {
                payload[4 + i] = (uint8_t)(x * 255.0f + 0.5f);
            }
        }
        const int32_t status =
            request(w, AG_LINK_WRITE, payload, 4 + (job % 2 == 0 ? 4 * count : count), reply);
        if (status != 0) {
            return status;
        }
    }
    ag_put32(payload, arrays[1].offset);
    memcpy(payload + 4, data->label, n);
    return request(w, AG_LINK_WRITE, payload, 4 + n, reply);
}

/* Trains one job, whatever happens on the line. */
static void train(test_bench *w, uint32_t job) {
    memory data;
    uint8_t payload[16], reply[AG_LINK_FRAME];
    const uint32_t n = (uint32_t)rows_of(job);
    fill(&data, job);
    uint32_t sum = ag_crc32(0, data.x, n * (uint32_t)sizeof data.x[0]);
    sum = ag_crc32(sum, data.label, n);
    ag_put32(payload, job);
    ag_put16(payload + 4, n);
    ag_put16(payload + 6, 1);
    ag_put_f32(payload + 8, rate_of(job));
    ag_put32(payload + 12, sum);
    for (uint32_t clean = 0; clean < 10; clean += w->errors.left == 0) {
        if (send_data(w, &data, job, reply) == 0 && request(w, AG_LINK_TRAIN, payload, 16, reply) == 0) {
            return;
        }
        const uint32_t steps = hello(w); /* after any error: the board's current step */
        if (steps == job + 1) {
            return;
        }
        if (steps != job) {
            fail("the board is at another step", steps, job);
        }
    }
    fail("a job is never done", job, 0);
}

static uint32_t expected(uint32_t jobs) {
    memory data;
    uint32_t hash = 0;
    for (uint32_t job = 0; job < jobs; job++) {
        fill(&data, job);
        hash = hash_of(hash, &data, rows_of(job), rate_of(job));
    }
    return hash;
}

static void train_under_fire(test_bench *w) {
    (void)hello(w);
    for (uint32_t job = 0; job < JOBS; job++) {
        train(w, job);
    }
    w->errors.left = 0;
    train(w, JOBS); /* on an error-free line */
    if (w->m.state[2] != JOBS + 1 || w->m.state[1] != expected(JOBS + 1)) {
        fail("other steps than the host's", w->m.state[2], w->m.state[1]);
    }
    if (w->board.count.trained != JOBS + 1) {
        fail("the counter of steps", w->board.count.trained, JOBS + 1);
    }
    trained += JOBS + 1;
}

/* Random requests with valid checksums, sessions and sequences, and any payload. */
static void send_nonsense(test_bench *w) {
    uint8_t frame[AG_LINK_FRAME], encoded[AG_LINK_ENCODED], reply[AG_LINK_FRAME];
    source line_is_clean = {NULL, 0}, *errors = &w->errors;
    source nonsense = *errors;
    *errors = line_is_clean;
    (void)hello(w);
    while (nonsense.left > 0) {
        const uint32_t kind = next_random(&nonsense), bytes = next_random(&nonsense) % (AG_LINK_PAYLOAD + 1);
        const uint32_t number = kind % 8 == 7 ? next_random(&nonsense) : 1 + kind % 13;
        ag_frame_fill(frame, number, 0, w->session, number == AG_LINK_HELLO ? w->nonce : ++w->sequence);
        for (uint32_t i = 0; i < bytes; i++) {
            frame[AG_LINK_HEADER + i] = (uint8_t)next_random(&nonsense);
        }
        if (number == AG_LINK_WRITE && bytes >= 4) { /* often a valid offset */
            ag_put32(frame + AG_LINK_HEADER, ag_get32(frame + AG_LINK_HEADER) & 0x210001ffu);
        }
        if (number == AG_LINK_TRAIN && bytes >= 8) {
            ag_put16(frame + AG_LINK_HEADER + 6, ag_get16(frame + AG_LINK_HEADER + 6) % 3);
        }
        const uint32_t length = ag_frame_encode(encoded, frame, ag_frame_seal(frame, bytes));
        frames++;
        ag_link_receive(&w->board, encoded, length);
        check_fences(&w->m);
        (void)reply_in(w, number, w->sequence, reply);
        if (number >= AG_LINK_REPLY) {
            w->sequence--; /* ignored by the board */
        }
    }
    static const uint8_t seed[4] = {0, 0, 0, 0};
    (void)hello(w);
    if (request(w, AG_LINK_INIT, seed, 4, reply) != 0) {
        fail("INIT after nonsense", 0, 0);
    }
    w->m.state[1] = w->m.state[2] = 0;
    train(w, 0);
    if (w->m.state[2] != 1 || w->m.state[1] != expected(1)) {
        fail("training after nonsense", w->m.state[2], 0);
    }
    trained++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static test_bench w;
    memset(&w, 0, sizeof w);
    memset(w.word, 0xff, sizeof w.word);
    w.m.before = w.m.after = w.m.beyond = w.m.end = 0xfeedu;
    w.ram.word = w.word;
    w.ram.slots = 2;
    w.ram.slot_bytes = SLOT;
    w.flash = ag_flash_ram_open(&w.ram);
    w.errors.data = data;
    w.errors.left = size;
    ag_link_start(&w.board, &model, &w.m, &w.flash, reply_sent, &w);
    (void)ag_link_restore(&w.board);
    if (next_random(&w.errors) % 3 == 2) {
        send_nonsense(&w);
    } else {
        train_under_fire(&w);
    }
    return 0;
}

static void report(void) {
    fprintf(stderr, "%lu frames, %lu steps of training: all as the host meant them\n", frames, trained);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return atexit(report);
}

#if defined(AG_STANDALONE)
int main(int argc, char **argv) {
    const unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    const uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    static uint8_t errors[4096];
    unsigned long runs = 0;
    while (frames < wanted) {
        const uint32_t run = (uint32_t)runs++, bytes = ag_rand_u32(seed, run, 0) % sizeof errors;
        const uint32_t error_free =
            1 + ag_rand_u32(seed, run, 1) % 6; /* how many of the errors do not occur */
        for (uint32_t i = 0; i < bytes; i++) {
            errors[i] = ag_rand_u32(seed, run, 2 * i + 2) % error_free == 0
                            ? (uint8_t)ag_rand_u32(seed, run, 2 * i + 3)
                            : 0;
        }
        errors[0] = (uint8_t)run;
        (void)LLVMFuzzerTestOneInput(errors, bytes);
    }
    printf("%lu frames in %lu runs, %lu steps of training: all as the host meant them\n", frames, runs,
           trained);
    return 0;
}
#endif
