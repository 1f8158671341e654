/* Runs every kernel row of a backend on its test cases, with arrays at each alignment. For autodiff-gen
 * test-kernels, which parses these lines:
 *
 *     begin ROW ALIGN
 *     wrong ROW ALIGN the case
 *     done ROW ALIGN cases skipped wrong max-error max-error/bound */
#include "compare.h"

#include "ag_console.h"
#include "ag_rng.h"
#include "ag_system.h"

#include <math.h>
#include <string.h>

enum {
    GUARD = 32,
    MAX_FLOATS = 1280,
    PADDED = GUARD + MAX_FLOATS + GUARD,
    ALIGNMENT_UNIT = 128,
    MAX_PRINTED = 2
};
enum { INPUTS = 3, ACTUAL = INPUTS, EXPECTED, MAGNITUDES, BUFFERS };
static const float PAD = -7.625e30f, EPSILON = 5.9604645e-08f;
#if defined __SOFTFP__
static const int32_t alignments[] = {4}; /* no FPU: nothing is loaded by more than words */
#else
static const int32_t alignments[] = {64, 16, 8, 4};
#endif

const float compare_scales[COMPARE_SCALES][2] = {
    {1.0f, 0.0f}, {-0.01f, 1.0f}, {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};

static float buffer[BUFFERS][PADDED + 2 * ALIGNMENT_UNIT / 4];
static int32_t indices[MAX_FLOATS];
static uint8_t index_buffers[3][PADDED];
static uint32_t sum_before[INPUTS];
static int32_t align, input_count;
static compare_layout output_layout;

static uint32_t cases, skipped, wrong;
static float max_error, max_error_over_bound;
static int32_t row_number;

/* The first float of an array; its guard precedes it. */
static float *data(int32_t which) {
    const uintptr_t from = (uintptr_t)(buffer[which] + GUARD);
    const uintptr_t aligned = (from + ALIGNMENT_UNIT - 1) / ALIGNMENT_UNIT * ALIGNMENT_UNIT;
    return buffer[which] + GUARD + (aligned - from + (uintptr_t)align) / sizeof(float);
}

static void fill(int32_t which, float value) {
    float *padded = data(which) - GUARD;
    for (int32_t i = 0; i < PADDED; i++) {
        padded[i] = value;
    }
}

static uint32_t checksum(int32_t which) {
    const float *padded = data(which) - GUARD;
    uint32_t sum = 0;
    for (int32_t i = 0; i < PADDED; i++) {
        uint32_t bits;
        memcpy(&bits, padded + i, sizeof bits);
        sum = sum * 31u + bits;
    }
    return sum;
}

compare_layout compare_dense(int32_t count) {
    return compare_matrix(1, count, count);
}

compare_layout compare_matrix(int32_t rows, int32_t columns, int32_t ld) {
    const compare_layout layout = {{1, 1, rows, columns}, {0, 0, ld, 1}};
    return layout;
}

static int32_t last_offset(const compare_layout *layout) {
    int32_t offset = 0;
    for (int32_t i = 0; i < 4; i++) {
        offset += (layout->extent[i] - 1) * layout->stride[i];
    }
    return offset;
}

/* Offset of element i of an array, counted innermost axis first. */
static int32_t offset_of(const compare_layout *layout, int32_t i) {
    int32_t offset = 0;
    for (int32_t axis = 3; axis >= 0; axis--) {
        offset += i % layout->extent[axis] * layout->stride[axis];
        i /= layout->extent[axis];
    }
    return offset;
}

static int32_t count_of(const compare_layout *layout) {
    return layout->extent[0] * layout->extent[1] * layout->extent[2] * layout->extent[3];
}

static void fill_random(int32_t which, const compare_layout *layout, compare_values values) {
    if (last_offset(layout) >= MAX_FLOATS) {
        ag_print("a case is larger than its buffer\n");
        ag_system_exit(2);
    }
    float *dst = data(which);
    for (int32_t i = 0; i < count_of(layout); i++) {
        const float u = ag_unitf((uint32_t)which + 1u, cases, (uint32_t)i);
        float value = values == COMPARE_UNIFORM ? 2.0f * u - 1.0f : floorf(u * 16.0f) * 0.125f - 1.0f;
        if (values == COMPARE_NANS && ag_rand_u32((uint32_t)which + 4u, cases, (uint32_t)i) % 37u == 0u) {
            value = NAN;
        }
        dst[offset_of(layout, i)] = value;
    }
}

bool compare_matches(const compare_row *row, compare_attributes *attributes) {
    attributes->align = align;
    input_count = 0;
    if (!row->when(attributes)) {
        skipped++;
        return false;
    }
    cases++;
    return true;
}

float *compare_input(int32_t slot, compare_layout layout, compare_values values) {
    fill(slot, PAD);
    fill_random(slot, &layout, values);
    sum_before[slot] = checksum(slot);
    input_count = slot >= input_count ? slot + 1 : input_count;
    return data(slot);
}

int32_t *compare_indices(int32_t count, int32_t rows) {
    for (int32_t i = 0; i < count; i++) {
        indices[i] = (int32_t)(ag_rand_u32(9u, cases, (uint32_t)i) % (uint32_t)rows);
    }
    return indices;
}

uint8_t *compare_input_index(void) {
    return index_buffers[0] + GUARD;
}

void compare_output(compare_layout layout, float beta) {
    output_layout = layout;
    fill(ACTUAL, PAD);
    fill_random(ACTUAL, &layout, COMPARE_UNIFORM);
    if (beta == 0.0f) {
        for (int32_t i = 0; i < count_of(&layout); i++) {
            data(ACTUAL)[offset_of(&layout, i)] = NAN;
        }
    }
    memcpy(data(EXPECTED) - GUARD, data(ACTUAL) - GUARD, PADDED * sizeof(float));
    fill(MAGNITUDES, 0.0f);
    memset(index_buffers[1], 0xa5, sizeof index_buffers[1]);
    memset(index_buffers[2], 0xa5, sizeof index_buffers[2]);
}

float *compare_actual(void) {
    return data(ACTUAL);
}

float *compare_expected(void) {
    return data(EXPECTED);
}

float *compare_magnitudes(void) {
    return data(MAGNITUDES);
}

uint8_t *compare_actual_index(void) {
    return index_buffers[1] + GUARD;
}

uint8_t *compare_expected_index(void) {
    return index_buffers[2] + GUARD;
}

static bool operands_are_unchanged(void) {
    bool same = true;
    for (int32_t slot = 0; slot < input_count; slot++) {
        same = same && checksum(slot) == sum_before[slot];
    }
    return same;
}

void compare_make_magnitudes(void) {
    if (!operands_are_unchanged()) {
        data(ACTUAL)[0] = PAD; /* which the check reports as a wrong result */
    }
    for (int32_t slot = 0; slot < input_count; slot++) {
        float *padded = data(slot) - GUARD;
        for (int32_t i = 0; i < PADDED; i++) {
            padded[i] = fabsf(padded[i]);
        }
    }
}

static void report(bool same, const compare_attributes *attributes,
                   void (*print_case)(const compare_attributes *attributes)) {
    if (same) {
        return;
    }
    if (++wrong <= MAX_PRINTED) {
        ag_print("wrong ");
        ag_print_i32(row_number, 0);
        ag_print(" ");
        ag_print_i32(align, 0);
        print_case(attributes);
        ag_print("\n");
    }
}

void compare_check(const compare_attributes *attributes, int32_t terms,
                   void (*print_case)(const compare_attributes *attributes)) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    const float *magnitude = data(MAGNITUDES) - GUARD;
    bool same = true;
    for (int32_t i = 0; i < PADDED; i++) {
        if (actual[i] == expected[i]) {
            continue;
        }
        /* each term is rounded at most `terms` times in a sum, then by alpha, beta and the last addition */
        const float rounding =
            ((float)terms + 3.0f) * fabsf(attributes->alpha) * magnitude[i] + 3.0f * fabsf(attributes->beta);
        const float bound = magnitude[i] == 0.0f ? 1e-44f : 2.0f * EPSILON * rounding;
        const float error = fabsf(actual[i] - expected[i]);
        same = same && error <= bound;
        if (error <= bound) {
            max_error = error > max_error ? error : max_error;
            max_error_over_bound =
                error > max_error_over_bound * bound ? error / bound : max_error_over_bound;
        }
    }
    report(same, attributes, print_case);
}

void compare_check_exact(const compare_attributes *attributes,
                         void (*print_case)(const compare_attributes *attributes)) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    bool same =
        operands_are_unchanged() && memcmp(index_buffers[1], index_buffers[2], sizeof index_buffers[1]) == 0;
    for (int32_t i = 0; i < PADDED; i++) {
        same = same && (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i])));
    }
    report(same, attributes, print_case);
}

void compare_print_field(const char *name, int32_t value) {
    ag_print(" ");
    ag_print(name);
    ag_print("=");
    ag_print_i32(value, 0);
}

void compare_print_scales(const compare_attributes *attributes) {
    ag_print(" alpha=");
    ag_print_f32(attributes->alpha, 0, 2);
    ag_print(" beta=");
    ag_print_f32(attributes->beta, 0, 2);
}

int32_t compare_floor_div(int32_t a, int32_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

int32_t compare_floor_mod(int32_t a, int32_t b) {
    return a % b < 0 ? a % b + b : a % b;
}

static void phase(const char *word) {
    ag_print(word);
    ag_print_i32(row_number, 0);
    ag_print(" ");
    ag_print_i32(align, 0);
}

int main(void) {
    for (row_number = 0; row_number < compare_row_count; row_number++) {
        for (uint32_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
            align = alignments[i];
            cases = skipped = wrong = 0;
            max_error = max_error_over_bound = 0.0f;
            phase("begin ");
            ag_print("\n");
            compare_rows[row_number].cases(&compare_rows[row_number]);
            phase("done ");
            ag_print(" ");
            ag_print_u32(cases, 0);
            ag_print(" ");
            ag_print_u32(skipped, 0);
            ag_print(" ");
            ag_print_u32(wrong, 0);
            ag_print(" ");
            ag_print_e32(max_error, 0, 3);
            ag_print(" ");
            ag_print_f32(max_error_over_bound, 0, 3);
            ag_print("\n");
        }
    }
    return 0;
}
