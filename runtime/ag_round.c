#include "ag_round.h"

#include "ag_checkpoint.h"
#include "ag_crc32.h"
#include "ag_frame.h"
#include "ag_rng.h"

#include <stddef.h>
#include <string.h>

enum { CHUNK = 64 };
enum { KEY_PROXIMAL = 0x786f7270 }; /* a stream of random numbers that is not the one of the order */

void ag_round_init(ag_round *r, const ag_link_model *model, void *memory, const ag_flash *flash) {
    memset(r, 0, sizeof *r);
    r->model = model;
    r->memory = (uint8_t *)memory;
    r->flash = flash;
}

void ag_round_leave(ag_round *r, uint32_t number) {
    r->number = number;
    r->begun = false;
}

/* ---- the shared part */

static bool is_shared(const ag_shared *s, bool local_buffers) {
    return !(local_buffers && s->is_buffer);
}

static uint32_t size_of(ag_shared_kind kind) {
    return kind == AG_SHARED_F32 ? 4 : 1;
}

uint32_t ag_round_elements(const ag_round *r) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        count += is_shared(s, r->local_buffers) ? s->count : 0;
    }
    return count;
}

bool ag_round_shares(const ag_link_model *model, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = 0; i < model->shared_parts; i++) {
        const ag_shared *s = &model->shared[i];
        const uint32_t all = s->count * size_of(s->kind);
        if (offset >= s->offset && offset - s->offset <= all && bytes <= all - (offset - s->offset)) {
            return true;
        }
    }
    return bytes == 0;
}

/* Where byte `offset` of the state is; `bytes` becomes how many of them follow there. */
static uint8_t *state_at(const ag_round *r, uint32_t offset, uint32_t *bytes) {
    const ag_link_model *m = r->model;
    const ag_part whole = {r->memory + m->state_offset, m->state_bytes};
    return m->state == NULL ? ag_part_at(&whole, 1, offset, bytes)
                            : ag_part_at(m->state, m->state_parts, offset, bytes);
}

/* Bytes of the state at the start of the round: its checkpoint is a header and the state. */
static int read_start(const ag_record *start, uint32_t offset, void *data, uint32_t bytes) {
    return ag_store_read(start, AG_CHECKPOINT_HEADER + offset, data, bytes);
}

/* The checksum of the shared part: in memory, or with `start` in that checkpoint. */
static int sum_of(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum) {
    uint8_t chunk[CHUNK];
    *sum = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        const uint32_t all = is_shared(s, local_buffers) ? s->count * size_of(s->kind) : 0;
        for (uint32_t at = 0, bytes; at < all; at += bytes) {
            bytes = all - at < CHUNK ? all - at : CHUNK;
            const uint8_t *data = chunk;
            if (start == NULL) {
                data = state_at(r, s->offset + at, &bytes);
            } else if (read_start(start, s->offset + at, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            *sum = ag_crc32(*sum, data, bytes);
        }
    }
    return AG_ROUND_OK;
}

/* ---- the start of a round */

/* The bytes that a record holds for one sample of an array: as they are in memory; or, with `units`, one for
 * each float. */
static uint32_t bytes_in_record(const ag_link_array *a, bool units) {
    const uint32_t bytes = a->row != 0 ? a->row : a->fixed;
    return units && a->is_f32 ? bytes / 4 : bytes;
}

static uint32_t part_of_record(const ag_link_model *m, bool targets, bool units) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < m->arrays; i++) {
        bytes += m->array[i].is_target == targets ? bytes_in_record(&m->array[i], units) : 0;
    }
    return bytes;
}

/* Whether the floats of a part of the records are bytes: `part` bytes are as many as these take. Otherwise
 * they are floats, and `fits` says whether the number of bytes is right. */
static bool holds_units(const ag_link_model *m, bool targets, uint32_t part, bool *fits) {
    const bool units = part != part_of_record(m, targets, false);
    *fits = part == part_of_record(m, targets, units);
    return units;
}

static bool samples_fit(const ag_round *r) {
    bool inputs = false, targets = false;
    if (r->samples != NULL && r->samples->train > 0) {
        (void)holds_units(r->model, false, r->samples->input_bytes, &inputs);
        (void)holds_units(r->model, true, r->samples->label_bytes, &targets);
    }
    return inputs && targets;
}

/* The checkpoint of the round is the one that was saved last. */
static int open_start(const ag_round *r, ag_checkpoint *c, ag_record *start) {
    const int status = ag_store_open(r->flash, c, start);
    if (status == AG_STORE_OK && start->bytes != AG_CHECKPOINT_HEADER + r->model->state_bytes) {
        return AG_STORE_ERR_LOAD;
    }
    return status;
}

int ag_round_enter(ag_round *r, uint32_t number, bool local_buffers, const ag_record *start) {
    if (!samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    r->number = number;
    r->begun = true;
    r->local_buffers = local_buffers;
    r->start = *start;
    r->steps = r->examples = 0;
    r->loss = 0.0f;
    return AG_ROUND_OK;
}

/* The same round again: it is continued if its state is in memory, and otherwise repeated from its start. */
static int begin_again(ag_round *r, uint32_t sum, bool local_buffers, bool written, ag_checkpoint *c) {
    ag_checkpoint found = *c;
    ag_record start;
    uint32_t own;
    int status = open_start(r, &found, &start);
    if (status == AG_STORE_OK) {
        status = sum_of(r, local_buffers, &start, &own);
    }
    if (status != AG_ROUND_OK) {
        return status;
    }
    if (own != sum) {
        return AG_ROUND_ERR_START;
    }
    if (r->begun && !written && r->local_buffers == local_buffers) {
        c->sequence = found.sequence;
        return AG_ROUND_OK;
    }
    status = ag_store_load(r->flash, c, r->model->load, r->memory);
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, c->round, local_buffers, &start);
    }
    return status;
}

int ag_round_begin(ag_round *r, uint32_t number, uint32_t sum, uint32_t options, bool written,
                   ag_checkpoint *c) {
    const bool local_buffers = (options & AG_ROUND_LOCAL_BUFFERS) != 0;
    uint32_t own;
    if (number == 0 || options > AG_ROUND_LOCAL_BUFFERS) {
        return AG_ROUND_ERR_RANGE;
    }
    if (r->flash == NULL) {
        return AG_STORE_ERR_NO_FLASH;
    }
    if (!samples_fit(r)) {
        return AG_ROUND_ERR_SAMPLES;
    }
    if (number < r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    c->graph_id = r->model->graph_id;
    c->program = r->model->program;
    c->round = number;
    if (number == r->number) {
        return begin_again(r, sum, local_buffers, written, c);
    }
    (void)sum_of(r, local_buffers, NULL, &own);
    if (own != sum) {
        return AG_ROUND_ERR_SUM;
    }
    ag_record start;
    int status = ag_store_save(r->flash, c, r->model->save, r->memory);
    if (status == AG_STORE_OK) {
        status = open_start(r, c, &start);
    }
    if (status == AG_STORE_OK) {
        status = ag_round_enter(r, number, local_buffers, &start);
    }
    return status;
}

/* ---- local steps */

uint32_t ag_round_sample(uint32_t i, uint32_t n, uint32_t seed, uint32_t epoch) {
    uint32_t bits = 1;
    while (bits < 32 && (n - 1) >> bits != 0) {
        bits++;
    }
    const uint32_t mask = 0xffffffffu >> (32 - bits), shift = (bits + 1) / 2;
    do { /* a bijection of 0 to mask; what it maps outside of the samples it maps again */
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t factor = ag_rand_u32(seed, epoch, 2 * k) | 1u;
            i = (i * factor + ag_rand_u32(seed, epoch, 2 * k + 1)) & mask;
            i ^= i >> shift;
        }
    } while (i >= n);
    return i;
}

/* Reads a sample into row `row` of the inputs, or of the targets. Bytes become floats in place, from the end
 * of the row's memory on. */
static int read_row(const ag_round *r, uint32_t sample, uint32_t row, bool targets) {
    const ag_link_model *m = r->model;
    uint32_t from = targets ? r->samples->input_bytes : 0;
    bool fits;
    const bool units =
        holds_units(m, targets, targets ? r->samples->label_bytes : r->samples->input_bytes, &fits);
    for (uint32_t i = 0; i < m->arrays; i++) {
        const ag_link_array *a = &m->array[i];
        if (a->is_target != targets) {
            continue;
        }
        const uint32_t all = bytes_in_record(a, false), bytes = bytes_in_record(a, units);
        const uint32_t place = m->input_offset + a->offset + row * a->row;
        uint8_t *to = r->memory + place, *last = to + (all - bytes);
        if (ag_samples_part(r->samples, sample, from, last, bytes) != AG_SAMPLES_OK) {
            return AG_ROUND_ERR_SAMPLES;
        }
        for (; to < last; to += sizeof(float), last++) {
            const float value = (float)*last / 255.0f;
            memcpy(to, &value, sizeof value);
        }
        from += bytes;
    }
    return AG_ROUND_OK;
}

/* The samples of a step with n requested: 0 if there cannot be so many. An array whose size does not
 * depend on n takes all of it from one sample. */
static uint32_t samples_of_step(const ag_round *r, uint32_t n) {
    uint32_t most = r->model->batch;
    for (uint32_t i = 0; i < r->model->arrays; i++) {
        most = r->model->array[i].row == 0 ? 1 : most;
    }
    if (n == 0) {
        return most < r->samples->train ? most : r->samples->train;
    }
    return n <= most ? n : 0;
}

static int read_batch(ag_round *r, uint32_t n, uint32_t seed) {
    const uint32_t all = r->samples->train;
    int status = AG_ROUND_OK;
    for (uint32_t row = 0; row < n && status == AG_ROUND_OK; row++) {
        const uint32_t at = r->examples + row;
        const uint32_t sample = ag_round_sample(at % all, all, seed, at / all);
        status = read_row(r, sample, row, false);
        if (status == AG_ROUND_OK) {
            status = read_row(r, sample, row, true);
        }
    }
    return status;
}

static float element_of(const uint8_t *data, ag_shared_kind kind) {
    float x;
    if (kind == AG_SHARED_S8) {
        int8_t q;
        memcpy(&q, data, sizeof q);
        return (float)q;
    }
    memcpy(&x, data, sizeof x);
    return x;
}

/* The largest integer that is not above x, for |x| < 2^31. */
static int32_t floor_of(float x) {
    const int32_t k = (int32_t)x;
    return (float)k > x ? k - 1 : k;
}

/* x rounded up or down at random, such that it is x on average; the nearest of `low` to `high`. x is finite.
 */
static int8_t rounded(float x, float u, int32_t low, int32_t high) {
    const float limited = x<(float)low ? (float)low : x>(float) high ? (float)high : x;
    const int32_t k = floor_of(limited + u);
    return (int8_t)(k > high ? high : k);
}

/* w -= rate * (w - w0) of all parameters. The product is rounded before it is subtracted. */
static int pull_to_start(const ag_round *r, float rate, uint32_t seed) {
    uint8_t chunk[CHUNK];
    uint32_t element = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        const uint32_t size = size_of(s->kind), all = s->is_buffer ? 0 : s->count * size;
        for (uint32_t at = 0, bytes; at < all; at += bytes) {
            bytes = all - at < CHUNK ? all - at : CHUNK;
            uint8_t *w = state_at(r, s->offset + at, &bytes);
            if (read_start(&r->start, s->offset + at, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            for (uint32_t k = 0; k < bytes; k += size, element++) {
                const float x = element_of(w + k, s->kind);
                volatile float change = rate * (x - element_of(chunk + k, s->kind));
                const float y = x - change;
                if (s->kind == AG_SHARED_F32) {
                    memcpy(w + k, &y, sizeof y);
                } else if (y - y == 0.0f) {
                    const int8_t q = rounded(y, ag_unitf(seed ^ KEY_PROXIMAL, r->steps, element), -128, 127);
                    memcpy(w + k, &q, sizeof q);
                }
            }
        }
    }
    return AG_ROUND_OK;
}

int ag_round_train(ag_round *r, uint32_t number, const ag_round_work *work) {
    if (!r->begun || number != r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    if (work->first != r->steps) {
        return AG_ROUND_ERR_STEP;
    }
    const uint32_t n = samples_of_step(r, work->n);
    const float lr = work->lr != work->lr ? r->model->lr : work->lr, rate = lr * work->mu;
    if (n == 0 || work->steps > (UINT32_MAX - r->examples) / n || !(work->mu >= 0.0f) ||
        !(rate - rate == 0.0f) || (work->mu > 0.0f && work->lr != work->lr)) {
        return AG_ROUND_ERR_RANGE;
    }
    int status = AG_ROUND_OK;
    for (uint32_t k = 0; k < work->steps && status == AG_ROUND_OK; k++) {
        float loss = 0.0f;
        status = read_batch(r, n, work->seed);
        if (status == AG_ROUND_OK) {
            status = r->model->train_step(r->memory, (int32_t)n, lr, &loss);
        }
        if (status != AG_ROUND_OK) {
            return status;
        }
        r->steps++;
        r->examples += n;
        r->loss += loss;
        if (work->mu > 0.0f) {
            status = pull_to_start(r, rate, work->seed);
            r->begun = status == AG_ROUND_OK; /* otherwise half of the weights are changed */
        }
    }
    return status;
}

/* ---- the difference to the start */

typedef void visit_fn(void *ctx, uint32_t element, float delta);

/* Visits the differences of elements of the shared part. */
static int visit(const ag_round *r, uint32_t first, uint32_t count, visit_fn *f, void *ctx) {
    uint8_t chunk[CHUNK];
    uint32_t before = 0; /* elements */
    const uint32_t end = first + count;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        if (!is_shared(s, r->local_buffers)) {
            continue;
        }
        const uint32_t size = size_of(s->kind), after = before + s->count;
        const uint32_t to = end < after ? end : after;
        for (uint32_t e = first > before ? first : before, bytes; e < to; e += bytes / size) {
            const uint32_t offset = s->offset + (e - before) * size;
            bytes = (to - e) * size < CHUNK ? (to - e) * size : CHUNK;
            const uint8_t *w = state_at(r, offset, &bytes);
            if (read_start(&r->start, offset, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            for (uint32_t k = 0; k < bytes; k += size) {
                f(ctx, e + k / size, element_of(w + k, s->kind) - element_of(chunk + k, s->kind));
            }
        }
        before = after;
    }
    return AG_ROUND_OK;
}

typedef struct encoder {
    uint8_t *out;
    float largest, scale;
    bool is_finite;
    uint32_t seed, number;
} encoder;

static void measure(void *ctx, uint32_t element, float delta) {
    encoder *e = (encoder *)ctx;
    const float size = delta < 0.0f ? -delta : delta;
    (void)element;
    e->is_finite &= delta - delta == 0.0f;
    e->largest = size > e->largest ? size : e->largest;
}

static void put_float(void *ctx, uint32_t element, float delta) {
    encoder *e = (encoder *)ctx;
    (void)element;
    ag_put_f32(e->out, delta);
    e->out += sizeof delta;
}

static void put_byte(void *ctx, uint32_t element, float delta) {
    encoder *e = (encoder *)ctx;
    const float u = ag_unitf(e->seed, e->number, element);
    *e->out++ = e->scale == 0.0f ? 0 : (uint8_t)rounded(delta / e->scale, u, -127, 127);
}

int ag_round_delta(const ag_round *r, uint32_t number, uint32_t first, uint32_t count, uint32_t encoding,
                   uint32_t seed, uint8_t *out) {
    if (!r->begun || number != r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    const uint32_t all = ag_round_elements(r);
    if (first > all || count > all - first || encoding > AG_ROUND_S8) {
        return AG_ROUND_ERR_RANGE;
    }
    encoder e = {out, 0.0f, 0.0f, true, seed, number};
    int status = visit(r, first, count, measure, &e);
    if (status == AG_ROUND_OK && !e.is_finite) {
        status = AG_ROUND_ERR_FINITE;
    }
    if (status == AG_ROUND_OK && encoding == AG_ROUND_F32) {
        status = visit(r, first, count, put_float, &e);
    } else if (status == AG_ROUND_OK) {
        e.scale = e.largest / 127.0f;
        if (e.scale < 1.17549435e-38f) { /* below, a quotient would be too coarse */
            e.scale = 0.0f;
        }
        put_float(&e, 0, e.scale);
        status = visit(r, first, count, put_byte, &e);
    }
    return status;
}
