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

/* The checkpoint of the start is a header and the state. */
int ag_round_read(const ag_record *start, uint32_t offset, void *data, uint32_t bytes) {
    return ag_store_read(start, AG_CHECKPOINT_HEADER + offset, data, bytes);
}

/* Continues a checksum with bytes of the start. */
static int add_to_sum(const ag_record *start, uint32_t offset, uint32_t bytes, uint32_t *sum) {
    uint8_t chunk[AG_ROUND_CHUNK];
    for (uint32_t done = 0, some; done < bytes; done += some) {
        some = bytes - done < AG_ROUND_CHUNK ? bytes - done : AG_ROUND_CHUNK;
        if (ag_round_read(start, offset + done, chunk, some) != AG_STORE_OK) {
            return AG_STORE_ERR_FLASH;
        }
        *sum = ag_crc32(*sum, chunk, some);
    }
    return AG_ROUND_OK;
}

int ag_round_sum(const ag_round *r, bool local_buffers, const ag_record *start, uint32_t *sum) {
    int status = AG_ROUND_OK;
    *sum = 0;
    for (uint32_t i = 0; i < r->model->shared_parts && status == AG_ROUND_OK; i++) {
        const ag_shared *s = &r->model->shared[i];
        const uint32_t bytes = ag_round_has(s, local_buffers) ? s->count * ag_round_size(s->kind) : 0;
        if (start == NULL) {
            *sum = ag_state_sum(r->model, r->memory, *sum, s->offset, bytes);
        } else {
            status = add_to_sum(start, s->offset, bytes, sum);
        }
    }
    return status;
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
            uint8_t *w = ag_state_at(r->model, r->memory, s->offset + at, &bytes);
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
