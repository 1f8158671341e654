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
    GUARD = 64,
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
static int32_t used[BUFFERS]; /* floats of the array, without its guards */

static uint32_t cases, skipped, wrong;
static float max_error, max_error_over_bound;
static int32_t row_number;

/* The first float of an array; its guard precedes it. */
static float *data(int32_t which) {
    const uintptr_t from = (uintptr_t)(buffer[which] + GUARD);
    const uintptr_t aligned = (from + ALIGNMENT_UNIT - 1) / ALIGNMENT_UNIT * ALIGNMENT_UNIT;
    return buffer[which] + GUARD + (aligned - from + (uintptr_t)align) / sizeof(float);
}

/* Floats of the array and its two guards. */
static int32_t padded_length(int32_t which) {
    return GUARD + used[which] + GUARD;
}

static uint32_t checksum(int32_t which) {
    const float *padded = data(which) - GUARD;
    const int32_t length = padded_length(which);
    uint32_t sum = 0;
    for (int32_t i = 0; i < length; i++) {
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

static float random_value(uint32_t key, uint32_t i, compare_values values) {
    const float u = ag_unitf(key + 1u, cases, i);
    if (values == COMPARE_UNIFORM) {
        return 2.0f * u - 1.0f;
    }
    const bool is_nan = values == COMPARE_NANS && ag_rand_u32(key + 4u, cases, i) % 37u == 0u;
    return is_nan ? NAN : floorf(u * 16.0f) * 0.125f - 1.0f;
}

/* An array between guards; `all_nan` replaces its values. */
static void fill(int32_t which, const compare_layout *layout, compare_values values, bool all_nan) {
    used[which] = last_offset(layout) + 1;
    if (used[which] > MAX_FLOATS) {
        ag_print("a case is larger than its buffer\n");
        ag_system_exit(2);
    }
    float *const dst = data(which), *padded = dst - GUARD;
    for (int32_t i = padded_length(which) - 1; i >= 0; i--) {
        padded[i] = PAD;
    }
    const int32_t *extent = layout->extent, *stride = layout->stride;
    uint32_t number = 0;
    for (int32_t i = 0; i < extent[0]; i++) {
        for (int32_t j = 0; j < extent[1]; j++) {
            for (int32_t k = 0; k < extent[2]; k++) {
                for (int32_t l = 0; l < extent[3]; l++) {
                    const int32_t at = i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3];
                    dst[at] = all_nan ? NAN : random_value((uint32_t)which, number++, values);
                }
            }
        }
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
    fill(slot, &layout, values, false);
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
    fill(ACTUAL, &layout, COMPARE_UNIFORM, beta == 0.0f);
    used[EXPECTED] = used[MAGNITUDES] = used[ACTUAL];
    const size_t bytes = (size_t)padded_length(ACTUAL) * sizeof(float);
    memcpy(data(EXPECTED) - GUARD, data(ACTUAL) - GUARD, bytes);
    memset(data(MAGNITUDES) - GUARD, 0, bytes);
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
        const int32_t length = padded_length(slot);
        for (int32_t i = 0; i < length; i++) {
            padded[i] = fabsf(padded[i]);
        }
    }
}

static void report(bool same, const compare_attributes *attributes) {
    if (same) {
        return;
    }
    if (++wrong <= MAX_PRINTED) {
        ag_print("wrong ");
        ag_print_i32(row_number, 0);
        ag_print(" ");
        ag_print_i32(align, 0);
        compare_rows[row_number].print(attributes);
        ag_print("\n");
    }
}

void compare_check(const compare_attributes *attributes, int32_t terms) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    const float *magnitude = data(MAGNITUDES) - GUARD;
    const int32_t length = padded_length(ACTUAL);
    bool same = true;
    for (int32_t i = 0; i < length; i++) {
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
    report(same, attributes);
}

void compare_check_exact(const compare_attributes *attributes) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    bool same =
        operands_are_unchanged() && memcmp(index_buffers[1], index_buffers[2], sizeof index_buffers[1]) == 0;
    for (int32_t i = padded_length(ACTUAL) - 1; i >= 0; i--) {
        same = same && (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i])));
    }
    report(same, attributes);
}

static void print_name(const char *name) {
    ag_print(" ");
    ag_print(name);
    ag_print("=");
}

void compare_print_int32_t(const char *name, int32_t value) {
    print_name(name);
    ag_print_i32(value, 0);
}

void compare_print_float(const char *name, float value) {
    print_name(name);
    ag_print_f32(value, 0, 2);
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
