/* The shared part of the state in a round. */
#include "ag_round_shared.h"

#include "ag_checkpoint.h"
#include "ag_crc32.h"
#include "ag_rng.h"

#include <stddef.h>
#include <string.h>

enum { KEY_PROXIMAL = 0x786f7270 }; /* a stream of random numbers that is not the one of the order */

uint32_t ag_round_elements(const ag_round *r) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        count += ag_round_has(s, r->local_buffers) ? s->count : 0;
    }
    return count;
}

bool ag_round_shares(const ag_link_model *model, bool local_buffers, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = 0; i < model->shared_parts; i++) {
        const ag_shared *s = &model->shared[i];
        const uint32_t all = ag_round_has(s, local_buffers) ? s->count * ag_round_size(s->kind) : 0;
        if (offset >= s->offset && offset - s->offset <= all && bytes <= all - (offset - s->offset)) {
            return true;
        }
    }
    return bytes == 0;
}

uint8_t *ag_round_state(const ag_round *r, uint32_t offset, uint32_t *bytes) {
    const ag_link_model *m = r->model;
    const ag_part whole = {r->memory + m->state_offset, m->state_bytes};
    return m->state == NULL ? ag_part_at(&whole, 1, offset, bytes)
                            : ag_part_at(m->state, m->state_parts, offset, bytes);
}

/* The checkpoint of the start is a header and the state. */
int ag_round_read(const ag_record *start, uint32_t offset, void *data, uint32_t bytes) {
    return ag_store_read(start, AG_CHECKPOINT_HEADER + offset, data, bytes);
}

int ag_round_sum(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum) {
    uint8_t chunk[AG_ROUND_CHUNK];
    *sum = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        const uint32_t all = ag_round_has(s, local_buffers) ? s->count * ag_round_size(s->kind) : 0;
        for (uint32_t at = 0, bytes; at < all; at += bytes) {
            bytes = all - at < AG_ROUND_CHUNK ? all - at : AG_ROUND_CHUNK;
            const uint8_t *data = chunk;
            if (start == NULL) {
                data = ag_round_state(r, s->offset + at, &bytes);
            } else if (ag_round_read(start, s->offset + at, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            *sum = ag_crc32(*sum, data, bytes);
        }
    }
    return AG_ROUND_OK;
}

float ag_round_element(const uint8_t *data, ag_shared_kind kind) {
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

int8_t ag_round_rounded(float x, float u, int32_t low, int32_t high) {
    const float limited = x<(float)low ? (float)low : x>(float) high ? (float)high : x;
    const int32_t k = floor_of(limited + u);
    return (int8_t)(k > high ? high : k);
}

int ag_round_pull(const ag_round *r, float rate, uint32_t seed) {
    uint8_t chunk[AG_ROUND_CHUNK];
    uint32_t element = 0;
    for (uint32_t i = 0; i < r->model->shared_parts; i++) {
        const ag_shared *s = &r->model->shared[i];
        const uint32_t size = ag_round_size(s->kind), all = s->is_buffer ? 0 : s->count * size;
        for (uint32_t at = 0, bytes; at < all; at += bytes) {
            bytes = all - at < AG_ROUND_CHUNK ? all - at : AG_ROUND_CHUNK;
            uint8_t *w = ag_round_state(r, s->offset + at, &bytes);
            if (ag_round_read(&r->start, s->offset + at, chunk, bytes) != AG_STORE_OK) {
                return AG_STORE_ERR_FLASH;
            }
            for (uint32_t k = 0; k < bytes; k += size, element++) {
                const float x = ag_round_element(w + k, s->kind);
                volatile float change = rate * (x - ag_round_element(chunk + k, s->kind));
                const float y = x - change;
                if (s->kind == AG_SHARED_F32) {
                    memcpy(w + k, &y, sizeof y);
                } else if (y - y == 0.0f) {
                    const int8_t q =
                        ag_round_rounded(y, ag_unitf(seed ^ KEY_PROXIMAL, r->steps, element), -128, 127);
                    memcpy(w + k, &q, sizeof q);
                }
            }
        }
    }
    return AG_ROUND_OK;
}
