/* The request handlers that move bytes: inputs, outputs, state and counters. */
#include "ag_requests.h"

#include "ag_crc32.h"
#include "ag_frame.h"

#include <stddef.h>
#include <string.h>

static uint8_t *input_of(const ag_link *l) {
    return l->memory + l->model->input_offset;
}

/* Memory that the host reads and writes; `at` is NULL for the state, which may be in several parts. */
typedef struct link_object {
    uint8_t *at;
    uint32_t bytes;
} link_object;

/* The object with this number; false where there is none. */
static bool find_object(ag_link *l, uint32_t number, link_object *o) {
    const ag_link_model *m = l->model;
    const link_object known[] = {
        [AG_LINK_INPUT] = {input_of(l), m->input_bytes},
        [AG_LINK_OUTPUT] = {l->memory + m->output_offset, m->output_bytes},
        [AG_LINK_STATE] = {NULL, m->state_bytes},
        [AG_LINK_COUNTERS] = {(uint8_t *)&l->count, sizeof l->count},
    };
    if (number >= sizeof known / sizeof *known) {
        return false;
    }
    *o = known[number];
    return true;
}

/* Where byte `offset` of the object is; `bytes` becomes how many of them follow there, at most the value
 * before. */
static uint8_t *part_of(const ag_link *l, const link_object *o, uint32_t offset, uint32_t *bytes) {
    return o->at == NULL ? ag_state_at(l->model, l->memory, offset, bytes) : o->at + offset;
}

static uint32_t checksum(const ag_link *l, const link_object *o) {
    return o->at == NULL ? ag_state_sum(l->model, l->memory, 0, 0, o->bytes) : ag_crc32(0, o->at, o->bytes);
}

static bool is_inside(uint32_t offset, uint32_t bytes, uint32_t all) {
    return offset <= all && bytes <= all - offset;
}

static int read_object(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 5) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t reference = ag_get32(x->in), offset = reference & 0xffffffu, bytes = x->in[4];
    link_object o;
    if (!find_object(l, reference >> 28, &o) || !is_inside(offset, bytes, o.bytes) ||
        bytes > AG_LINK_PAYLOAD) {
        return AG_LINK_ERR_RANGE;
    }
    for (uint32_t done = 0, moved; done < bytes; done += moved) {
        moved = bytes - done;
        const uint8_t *at = part_of(l, &o, offset + done, &moved);
        memcpy(x->out + done, at, moved);
    }
    x->out_bytes = bytes;
    return AG_LINK_OK;
}

/* Whether `bytes` bytes at `offset` are within one float array of the inputs. */
static bool is_in_floats(const ag_link_model *m, uint32_t offset, uint32_t bytes) {
    for (uint32_t i = 0; i < m->arrays; i++) {
        const ag_link_array *a = &m->array[i];
        if (a->is_f32 && offset >= a->offset &&
            is_inside(offset - a->offset, bytes, ag_array_bytes(a, m->batch))) {
            return offset % 4 == 0;
        }
    }
    return false;
}

static uint8_t *store_unit_floats(uint8_t *dst, const uint8_t *byte, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, dst += sizeof(float)) {
        const float value = byte == NULL ? 0.0f : (float)byte[i] / 255.0f;
        memcpy(dst, &value, sizeof value);
    }
    return dst;
}

/* Integers of 1 or 2 bytes, times the float before them. */
static void store_scaled_floats(uint8_t *dst, const uint8_t *in, uint32_t count, uint32_t size) {
    const float scale = ag_get_f32(in);
    in += 4;
    for (uint32_t i = 0; i < count; i++, dst += sizeof(float), in += size) {
        const int32_t k = size == 1 ? (int8_t)*in : (int16_t)ag_get16(in);
        ag_put_f32(dst, (float)k * scale);
    }
}

/* Floats that are sent as integers; nothing is written unless all of them fit. */
static int write_floats(ag_link *l, uint32_t encoding, uint32_t offset, const uint8_t *in, uint32_t bytes) {
    const uint32_t size = encoding == AG_LINK_S16 ? 2 : 1;
    uint32_t floats = encoding == AG_LINK_UNIT ? bytes : 0;
    if (encoding == AG_LINK_S8 || encoding == AG_LINK_S16) {
        if (bytes < 4 || bytes % size != 0) {
            return AG_LINK_ERR_LENGTH;
        }
        floats = (bytes - 4) / size;
    } else if (encoding == AG_LINK_RUNS) {
        for (uint32_t i = 0; i < bytes; i += 2u + in[i + 1]) {
            if (bytes - i < 2 || bytes - i - 2 < in[i + 1]) {
                return AG_LINK_ERR_LENGTH;
            }
            floats += (uint32_t)in[i] + in[i + 1];
        }
    } else if (encoding != AG_LINK_UNIT) {
        return AG_LINK_ERR_RANGE;
    }
    if (!is_in_floats(l->model, offset, 4 * floats)) {
        return AG_LINK_ERR_RANGE;
    }
    uint8_t *dst = input_of(l) + offset;
    if (encoding == AG_LINK_UNIT) {
        (void)store_unit_floats(dst, in, bytes);
        return AG_LINK_OK;
    }
    if (encoding != AG_LINK_RUNS) {
        store_scaled_floats(dst, in, floats, size);
        return AG_LINK_OK;
    }
    for (uint32_t i = 0; i < bytes; i += 2u + in[i + 1]) {
        dst = store_unit_floats(dst, NULL, in[i]);
        dst = store_unit_floats(dst, in + i + 2, in[i + 1]);
    }
    return AG_LINK_OK;
}

static int write_object(ag_link *l, ag_exchange *x) {
    if (x->in_bytes < 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t reference = ag_get32(x->in), number = reference >> 28, encoding = reference >> 24 & 15u;
    const uint32_t offset = reference & 0xffffffu, count = x->in_bytes - 4;
    link_object o;
    if (number != AG_LINK_INPUT && number != AG_LINK_STATE) {
        return AG_LINK_ERR_RANGE;
    }
    if (number == AG_LINK_STATE && !l->incomplete) {
        return AG_LINK_ERR_INCOMPLETE;
    }
    if (encoding != AG_LINK_RAW && number == AG_LINK_INPUT) {
        return write_floats(l, encoding, offset, x->in + 4, count);
    }
    if (encoding != AG_LINK_RAW || !find_object(l, number, &o) || !is_inside(offset, count, o.bytes)) {
        return AG_LINK_ERR_RANGE;
    }
    for (uint32_t done = 0, moved; done < count; done += moved) {
        moved = count - done;
        uint8_t *at = part_of(l, &o, offset + done, &moved);
        memcpy(at, x->in + 4 + done, moved);
    }
    if (number == AG_LINK_STATE) {
        l->beyond_shared |= !ag_round_shares(l->model, false, offset, count);
        l->in_buffers |= !ag_round_shares(l->model, true, offset, count);
    }
    return AG_LINK_OK;
}

/* The inputs from a file of the host, which an emulator reads much faster than bytes of its serial port. */
static int fetch(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    const uint32_t bytes = ag_get32(x->in);
    if (bytes > l->model->input_bytes) {
        return AG_LINK_ERR_RANGE;
    }
    return l->fetch != NULL && l->fetch(input_of(l), bytes) == 0 ? AG_LINK_OK : AG_LINK_ERR_FILE;
}

static int sum_object(ag_link *l, ag_exchange *x) {
    if (x->in_bytes != 4) {
        return AG_LINK_ERR_LENGTH;
    }
    link_object o;
    if (!find_object(l, ag_get32(x->in) >> 28, &o)) {
        return AG_LINK_ERR_RANGE;
    }
    ag_put32(x->out, checksum(l, &o));
    x->out_bytes = 4;
    return AG_LINK_OK;
}

int ag_link_dispatch_object(ag_link *l, uint32_t request, ag_exchange *x) {
    switch (request) {
    case AG_LINK_READ:
        return read_object(l, x);
    case AG_LINK_WRITE:
        return write_object(l, x);
    case AG_LINK_SUM:
        return sum_object(l, x);
    default:
        return fetch(l, x);
    }
}
