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

enum { JOBS = 6, SLOT = 256, WINDOW = 6 };

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
    ag_samples samples;
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

/* Requests that are sent without waiting for replies, numbered from `first`. `confirmed`: how many of them
 * the board has executed; `bytes`: the length of the last one's reply, or -1. */
typedef struct window {
    uint32_t first, count, confirmed;
    uint32_t number[WINDOW], length[WINDOW];
    uint8_t payload[WINDOW][AG_LINK_PAYLOAD];
    int32_t bytes;
    uint8_t reply[AG_LINK_FRAME];
} window;

static void add(window *v, uint32_t number, const void *payload, uint32_t bytes) {
    v->number[v->count] = number;
    v->length[v->count] = bytes;
    memcpy(v->payload[v->count++], payload, bytes);
}

static void confirm(window *v, uint32_t count) {
    v->confirmed = count > v->confirmed && count <= v->count ? count : v->confirmed;
}

/* A frame from the board: a reply confirms all requests before it; so does a NAK, except the last one. */
static void take(const test_bench *w, window *v, uint32_t bytes) {
    const uint32_t number = w->in[0], sequence = ag_get32(w->in + AG_FRAME_SEQUENCE),
                   at = sequence - v->first;
    const bool greets = v->number[0] == AG_LINK_HELLO;
    if (!ag_frame_is_good(w->in, bytes) || (!greets && ag_get16(w->in + AG_FRAME_SESSION) != w->session)) {
        return;
    }
    if (number == AG_LINK_NAK && at + 1 < v->count) {
        confirm(v, at + 1);
    } else if (at < v->count && number == (v->number[at] | AG_LINK_REPLY)) {
        confirm(v, at + 1);
        if (at + 1 == v->count) {
            memcpy(v->reply, w->in, bytes);
            v->bytes = (int32_t)bytes - AG_LINK_HEADER - 4;
        }
    }
}

static void receive(test_bench *w, window *v) {
    for (uint32_t i = 0; i < w->down.out_bytes; i++) {
        if (w->down.out[i] != 0) {
            if (w->in_bytes < sizeof w->in) {
                w->in[w->in_bytes++] = w->down.out[i];
            }
            continue;
        }
        take(w, v, ag_frame_decode(w->in, w->in_bytes));
        w->in_bytes = 0;
    }
    w->down.out_bytes = 0;
}

/* Sends from the first unconfirmed request on, until the last is answered: the length of its reply, or -1. */
static int32_t exchange(test_bench *w, window *v) {
    uint8_t frame[AG_LINK_FRAME], encoded[AG_LINK_ENCODED + 1];
    v->bytes = -1;
    for (uint32_t attempt = 0, clean = 0; clean < 10; attempt++, clean += w->errors.left == 0) {
        for (uint32_t k = v->confirmed; k < v->count; k++) {
            ag_frame_fill(frame, v->number[k], 0, w->session, v->first + k);
            memcpy(frame + AG_LINK_HEADER, v->payload[k], v->length[k]);
            encoded[0] = 0; /* terminates a partial frame */
            const uint32_t length =
                1 + ag_frame_encode(encoded + 1, frame, ag_frame_seal(frame, v->length[k]));
            const uint32_t skipped = attempt == 0 || k > v->confirmed ? 1 : 0;
            transmit(&w->up, &w->errors, encoded + skipped, length - skipped);
        }
        const uint32_t sent = w->up.out_bytes;
        w->up.out_bytes = 0;
        const uint32_t cut = sent == 0 ? 0 : next_random(&w->errors) % (sent + 1);
        ag_link_receive(&w->board, w->up.out, cut);
        ag_link_receive(&w->board, w->up.out + cut, sent - cut);
        check_fences(&w->m);
        receive(w, v);
        if (v->bytes >= 0) {
            return v->bytes;
        }
    }
    return -1;
}

/* Starts a session: the board's step count. */
static uint32_t hello(test_bench *w) {
    static const uint8_t version[4] = {AG_LINK_VERSION, 0, 0, 0};
    window v = {.first = ++w->nonce};
    add(&v, AG_LINK_HELLO, version, 4);
    const int32_t got = exchange(w, &v);
    if (got != AG_LINK_GREETING || v.reply[AG_FRAME_STATUS] != 0 ||
        ag_get32(v.reply + AG_LINK_HEADER + 4) != model.graph_id) {
        fail("no answer to HELLO", w->nonce, (uint32_t)got);
    }
    w->session = (uint16_t)ag_get16(v.reply + AG_FRAME_SESSION);
    w->sequence = 0;
    return ag_get32(v.reply + AG_LINK_HEADER + 24);
}

/* The next requests of the session: the status of the last one; -1 where the session fails. */
static int32_t run(test_bench *w, window *v) {
    v->first = w->sequence + 1;
    if (exchange(w, v) < 0) {
        return -1;
    }
    w->sequence += v->count;
    return (int8_t)v->reply[AG_FRAME_STATUS];
}

static void fill(memory *m, uint32_t job) {
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) {
        const uint32_t k = ag_rand_u32(job, 0, i) & 255u; /* fits the job's encoding */
        m->x[i / WIDTH][i % WIDTH] = job % 3 == 2 ? ((float)k - 128.0f) * 0.0625f : (float)k / 255.0f;
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

/* Adds the requests that write the job's data: as they are, as bytes, or as integers of 16 bits. */
static void add_data(window *v, const memory *data, uint32_t job) {
    static const uint32_t encodings[] = {AG_LINK_RAW, AG_LINK_UNIT, AG_LINK_S16};
    uint8_t payload[AG_LINK_PAYLOAD];
    const uint32_t n = (uint32_t)rows_of(job), encoding = encodings[job % 3], per = 11;
    for (uint32_t at = 0; at < n * WIDTH; at += per) {
        const uint32_t count = n * WIDTH - at < per ? n * WIDTH - at : per;
        uint32_t bytes = 4;
        ag_put32(payload, encoding << 24 | at * 4u);
        if (encoding == AG_LINK_S16) {
            ag_put_f32(payload + 4, 0.0625f);
            bytes = 8;
        }
        for (uint32_t i = 0; i < count; i++) {
            const float x = (&data->x[0][0])[at + i];
            if (encoding == AG_LINK_RAW) {
                ag_put_f32(payload + bytes, x);
                bytes += 4;
            } else if (encoding == AG_LINK_S16) {
                ag_put16(payload + bytes, (uint32_t)(int32_t)(x / 0.0625f));
                bytes += 2;
            } else {
                payload[bytes++] = (uint8_t)(x * 255.0f + 0.5f);
            }
        }
        add(v, AG_LINK_WRITE, payload, bytes);
    }
    ag_put32(payload, arrays[1].offset);
    memcpy(payload + 4, data->label, n);
    add(v, AG_LINK_WRITE, payload, 4 + n);
}

/* Trains one job, whatever happens on the line. */
static void train(test_bench *w, uint32_t job) {
    memory data;
    uint8_t payload[16];
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
        window v = {0};
        add_data(&v, &data, job);
        add(&v, AG_LINK_TRAIN, payload, 16);
        if (run(w, &v) == 0) {
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

static int draw_zeros(void *data, uint32_t bytes) {
    memset(data, 0, bytes);
    return 0;
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

/* The length of a request of rounds or of synchronous training that the board often executes; 0 of others.
 * `long_one`: of two. */
static uint32_t plausible_length(uint32_t number, bool long_one) {
    switch (number) {
    case AG_LINK_ROUND:
        return long_one ? 20 : 12;
    case AG_LINK_LOCAL:
        return 24;
    case AG_LINK_DELTA:
        return long_one ? 17 : 15;
    case AG_LINK_EVALUATE:
        return 10;
    case AG_LINK_IDENTITY:
        return 4;
    case AG_LINK_ACCUMULATE:
        return 20;
    case AG_LINK_APPLY:
        return 16;
    default:
        return 0;
    }
}

/* A request of synchronous training from the board's state on, whose payload has the checksums of both parts.
 */
static void name_state(const test_bench *w, uint32_t number, uint8_t *payload) {
    uint8_t *sums = payload + (number == AG_LINK_ACCUMULATE ? 12 : 8);
    ag_put32(payload, w->board.count.steps);
    if (number == AG_LINK_ACCUMULATE) {
        const uint32_t n = 1 + payload[4] % ROWS;
        ag_put16(payload + 4, n);
        ag_put32(payload + 8, ag_input_sum(&model, (const uint8_t *)&w->m, n, true));
    }
    ag_put32(sums, ag_crc32(0, &w->m.state[0], sizeof w->m.state[0]));
    ag_put32(sums + 4, ag_crc32(0, &w->m.state[1], 3 * sizeof w->m.state[0]));
}

/* Changes its payload accordingly. */
static void make_plausible(const test_bench *w, uint32_t number, uint32_t bytes, uint8_t *payload) {
    const ag_round *r = &w->board.round;
    if (number == AG_LINK_ACCUMULATE || number == AG_LINK_APPLY) {
        name_state(w, number, payload);
        return;
    }
    if (number == AG_LINK_IDENTITY) {
        ag_put32(payload, payload[0] % 3u);
        return;
    }
    ag_put32(payload, r->number + (number == AG_LINK_ROUND ? payload[0] % 3u : 0u));
    if (number == AG_LINK_ROUND) {
        const uint32_t options = payload[8] % 2u;
        const uint32_t sum = options != 0 ? 0 : ag_crc32(0, &w->m.state[0], sizeof w->m.state[0]);
        ag_put32(payload + 4, ag_crc32(sum, &w->m.state[3], sizeof w->m.state[3]));
        ag_put32(payload + 8, options | (bytes == 20 ? (uint32_t)AG_ROUND_MASKED : 0u));
        if (bytes == 20) {
            ag_put_f32(payload + 12, 1.0f + (float)(payload[12] % 3u));
            ag_put_f32(payload + 16, (float)(payload[16] % 2u));
        }
    } else if (number == AG_LINK_LOCAL) {
        ag_put32(payload + 4, r->steps);
        ag_put16(payload + 8, payload[8] % 4u);
        ag_put16(payload + 10, payload[10] % (ROWS + 1u));
        ag_put_f32(payload + 16, (float)(payload[16] % 3u));
    } else {
        ag_put32(payload + 4, payload[4] % 3u);
        ag_put16(payload + 8, payload[8] % 5u);
    }
    if (number == AG_LINK_DELTA) {
        payload[10] = payload[10] % 3u;
    }
    if (number == AG_LINK_DELTA && bytes == 17) {
        ag_put16(payload + 15, payload[15] % 6u);
    }
}

/* Random requests with valid checksums, sessions and sequences, and any payload. */
static void send_nonsense(test_bench *w) {
    uint8_t frame[AG_LINK_FRAME], encoded[AG_LINK_ENCODED];
    source line_is_clean = {NULL, 0}, *errors = &w->errors;
    source nonsense = *errors;
    *errors = line_is_clean;
    /* of all requests, or mostly of those that begin, use and leave rounds */
    static const uint8_t of_rounds[] = {AG_LINK_ROUND,      AG_LINK_LOCAL,    AG_LINK_DELTA,    AG_LINK_BEGIN,
                                        AG_LINK_WRITE,      AG_LINK_LOAD,     AG_LINK_SAVE,     AG_LINK_LOCAL,
                                        AG_LINK_DELTA,      AG_LINK_EVALUATE, AG_LINK_IDENTITY, AG_LINK_WEAR,
                                        AG_LINK_ACCUMULATE, AG_LINK_APPLY};
    const bool rounds = next_random(&nonsense) % 2 != 0;
    (void)hello(w);
    while (nonsense.left > 0) {
        const uint32_t kind = next_random(&nonsense);
        const uint32_t number = rounds          ? of_rounds[kind % sizeof of_rounds]
                                : kind % 8 == 7 ? next_random(&nonsense)
                                                : 1 + kind % 22;
        const uint32_t plausible = kind < 192 ? plausible_length(number, kind % 2 != 0) : 0;
        uint32_t bytes = plausible;
        if (rounds && number == AG_LINK_LOAD) {
            bytes = 4;
        } else if (plausible == 0) {
            const uint32_t most = rounds && number == AG_LINK_WRITE ? 12 : AG_LINK_PAYLOAD;
            bytes = next_random(&nonsense) % (most + 1);
        }
        ag_frame_fill(frame, number, 0, w->session, number == AG_LINK_HELLO ? w->nonce : ++w->sequence);
        for (uint32_t i = 0; i < bytes; i++) {
            frame[AG_LINK_HEADER + i] = (uint8_t)next_random(&nonsense);
        }
        if (number == AG_LINK_WRITE && bytes >= 4) { /* often a valid offset */
            ag_put32(frame + AG_LINK_HEADER,
                     ag_get32(frame + AG_LINK_HEADER) & (rounds ? 0x2000000fu : 0x270001ffu));
        }
        if (number == AG_LINK_TRAIN && bytes >= 8) {
            ag_put16(frame + AG_LINK_HEADER + 6, ag_get16(frame + AG_LINK_HEADER + 6) % 3);
        }
        if (rounds && number == AG_LINK_LOAD) {
            memset(frame + AG_LINK_HEADER, 0, 4);
        }
        if (plausible != 0) {
            make_plausible(w, number, plausible, frame + AG_LINK_HEADER);
        }
        const uint32_t length = ag_frame_encode(encoded, frame, ag_frame_seal(frame, bytes));
        frames++;
        ag_link_receive(&w->board, encoded, length);
        check_fences(&w->m);
        w->down.out_bytes = 0;
        if (number >= AG_LINK_REPLY) {
            w->sequence--; /* ignored by the board */
        }
    }
    static const uint8_t seed[4] = {0, 0, 0, 0};
    (void)hello(w);
    window v = {0};
    add(&v, AG_LINK_INIT, seed, 4);
    if (run(w, &v) != 0) {
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
    if (open_set(&w.samples) != AG_SAMPLES_OK) {
        fail("the set of samples", 0, 0);
    }
    w.board.round.samples = &w.samples;
    w.board.round.entropy = draw_zeros;
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
