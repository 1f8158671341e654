/* The records of a board's sample set as rows of the model's inputs and targets. */
#include "ag_round_samples.h"

#include "ag_rng.h"

#include <string.h>

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

bool ag_round_samples_fit(const ag_round *r) {
    bool inputs = false, targets = false;
    if (r->samples != NULL && r->samples->train > 0) {
        (void)holds_units(r->model, false, r->samples->input_bytes, &inputs);
        (void)holds_units(r->model, true, r->samples->label_bytes, &targets);
    }
    return inputs && targets;
}

uint32_t ag_round_sample(uint32_t i, uint32_t n, uint32_t seed, uint32_t epoch) {
    uint32_t bits = 1;
    while (bits < 32 && (n - 1) >> bits != 0) {
        bits++;
    }
    const uint32_t mask = 0xffffffffu >> (32 - bits), shift = (bits + 1) / 2;
    do { /* a bijection of 0 to mask; results outside of the samples are mapped again */
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
static int read_part(const ag_round *r, uint32_t record, uint32_t row, bool targets) {
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
        if (ag_samples_part(r->samples, record, from, last, bytes) != AG_SAMPLES_OK) {
            return AG_ROUND_ERR_SAMPLES;
        }
        for (; to < last; to += sizeof(float), last++) {
            const float value = (float)((int32_t)*last - r->samples->zero) / r->samples->divisor;
            memcpy(to, &value, sizeof value);
        }
        from += bytes;
    }
    return AG_ROUND_OK;
}

int ag_round_read_row(const ag_round *r, uint32_t record, uint32_t row) {
    const int status = read_part(r, record, row, false);
    return status == AG_ROUND_OK ? read_part(r, record, row, true) : status;
}

uint32_t ag_round_samples_of_step(const ag_round *r, uint32_t n) {
    uint32_t most = r->model->batch;
    for (uint32_t i = 0; i < r->model->arrays; i++) {
        most = r->model->array[i].row == 0 ? 1 : most;
    }
    if (n == 0) {
        return most < r->samples->train ? most : r->samples->train;
    }
    return n <= most ? n : 0;
}

/* ---- evaluation */

static uint32_t label_at(const uint8_t *label, uint32_t bytes) {
    uint32_t value = 0;
    for (uint32_t k = 0; k < bytes; k++) {
        value |= (uint32_t)label[k] << 8 * k;
    }
    return value;
}

/* The class with the highest of `count` scores, which are `stride` apart. */
static uint32_t highest(const uint8_t *score, uint32_t count, uint32_t stride) {
    uint32_t best = count; /* none is a number */
    float most = 0.0f;
    for (uint32_t k = 0; k < count; k++) {
        float x;
        memcpy(&x, score + (size_t)k * stride * sizeof x, sizeof x);
        if (best == count ? x == x : x > most) {
            best = k;
            most = x;
        }
    }
    return best;
}

/* Compares the labels of `rows` samples with the scores of predict. */
static void compare(const ag_round *r, uint32_t rows, ag_round_evaluation *e) {
    const ag_link_model *m = r->model;
    const ag_classes *c = &m->classes;
    const ag_link_array *a = &m->array[c->label];
    const uint32_t labels = (a->row != 0 ? rows * a->row : a->fixed) / c->label_bytes;
    const uint8_t *label = r->memory + m->input_offset + a->offset, *scores = r->memory + m->output_offset;
    for (uint32_t k = 0; k < labels; k++) {
        const uint32_t at = k / c->inner * c->inner * c->count + k % c->inner;
        const uint32_t truth = label_at(label + (size_t)k * c->label_bytes, c->label_bytes);
        if (truth < c->count) { /* others are ignored by the loss */
            e->labels++;
            e->right += highest(scores + (size_t)at * sizeof(float), c->count, c->inner) == truth;
        }
    }
}

int ag_round_evaluate(ag_round *r, uint32_t number, uint32_t first, uint32_t count, ag_round_evaluation *e) {
    memset(e, 0, sizeof *e);
    if (!r->begun || number != r->number) {
        return AG_ROUND_ERR_NUMBER;
    }
    if (r->model->classes.count == 0) {
        return AG_ROUND_ERR_CLASSES;
    }
    const uint32_t own = r->samples->test > 0 ? r->samples->train : 0;
    e->samples = r->samples->test > 0 ? r->samples->test : r->samples->train;
    if (first > e->samples || count > e->samples - first) {
        return AG_ROUND_ERR_RANGE;
    }
    int status = AG_ROUND_OK;
    const uint32_t most = ag_round_samples_of_step(r, 0);
    for (uint32_t done = 0, rows; done < count && status == AG_ROUND_OK; done += rows) {
        rows = count - done < most ? count - done : most;
        for (uint32_t row = 0; row < rows && status == AG_ROUND_OK; row++) {
            status = ag_round_read_row(r, own + first + done + row, row);
        }
        if (status == AG_ROUND_OK) {
            status = r->model->predict(r->memory, (int32_t)rows);
        }
        if (status == AG_ROUND_OK) {
            compare(r, rows, e);
        }
    }
    return status;
}
