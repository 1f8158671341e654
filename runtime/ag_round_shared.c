/* The shared part of the state in a round: its checksum, and its difference from the start. */
#include "ag_round_shared.h"

#include "ag_checkpoint.h"
#include "ag_crc32.h"
#include "ag_frame.h"
#include "ag_rng.h"

#include <stddef.h>
#include <string.h>

enum { CHUNK = 64 };
enum { KEY_PROXIMAL = 0x786f7270 }; /* a stream of random numbers that is not the one of the order */

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

int ag_round_sum(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum) {
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

int ag_round_pull(const ag_round *r, float rate, uint32_t seed) {
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
