/* Runs every kernel row of a backend on its test cases, with arrays at each alignment. `ref` computes the
 * expected values of a case once, since they do not depend on the alignment. For autodiff-gen test-kernels,
 * which parses these lines:
 *
 *     begin ROW
 *     wrong ROW ALIGN the case, scratch=BYTES where its row's formula says fewer, outside=1 for other writes
 *     done ROW ALIGN cases skipped wrong max-error max-error/bound */
#include "compare.h"

#include "ag_console.h"
#include "ag_rng.h"
#include "ag_system.h"

#include <math.h>
#include <string.h>

enum {
    GUARD = 64,
    MAX_FLOATS = COMPARE_FLOATS,
    PADDED = GUARD + MAX_FLOATS + GUARD,
    ALIGNMENT_UNIT = 128,
    MAX_CHANNELS = 160,
    MAX_SCRATCH = COMPARE_FLOATS < COMPARE_LARGE ? 14400 : 28800,
    MAX_PRINTED = 2
};
enum { INPUTS = 3, ACTUAL = INPUTS, EXPECTED, MAGNITUDES, BUFFERS };
static const float PAD = -7.625e30f, EPSILON = 5.9604645e-08f;
#if defined __SOFTFP__
static const int32_t alignments[] = {4}; /* no FPU: nothing is loaded by more than words */
#elif COMPARE_FORBID_GUARDS
static const int32_t alignments[] = {8}; /* the unit of AddressSanitizer's shadow */
#else
static const int32_t alignments[] = {64, 16, 8, 4};
#endif
enum { ALIGNMENTS = sizeof alignments / sizeof *alignments };

const float compare_scales[COMPARE_SCALES][2] = {
    {1.0f, 0.0f}, {-0.01f, 1.0f}, {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};

typedef struct tally {
    uint32_t cases, skipped, wrong;
    float max_error, max_error_over_bound;
} tally;

static float buffer[BUFFERS][PADDED + 2 * ALIGNMENT_UNIT / 4];
static float original[INPUTS + 1][PADDED]; /* of the inputs and the output before the call, with guards */
static int32_t indices[MAX_FLOATS];
static uint8_t index_buffers[3][PADDED];
static float channel_values[4][MAX_CHANNELS]; /* scales, biases, and their magnitudes */
static ag_epilogue epilogue, of_magnitudes;
static bool with_epilogue, output_is_s8;
static uint32_t epilogues;
static int32_t input_count;
static int32_t used[BUFFERS]; /* floats of the array, without its guards */
static tally tallies[ALIGNMENTS];
static uint64_t
    scratch_memory[(GUARD + MAX_SCRATCH + GUARD) / 8 + 1]; /* what is used of it is at no multiple of 8 */
static int32_t scratch_bytes, scratch_needed;
static bool small_products;      /* of inputs that are COMPARE_SMALL */
static bool matches[ALIGNMENTS]; /* whether the case meets the row's conditions */
static int32_t at, next;         /* the alignment of inputs and output, that of the next call */
static uint32_t case_number;
static int32_t row_number;

/* The first float of an array; its guard precedes it. */
static float *data(int32_t which) {
    const int32_t align = alignments[which < EXPECTED ? at : 0];
    const uintptr_t from = (uintptr_t)(buffer[which] + GUARD);
    const uintptr_t aligned = (from + ALIGNMENT_UNIT - 1) / ALIGNMENT_UNIT * ALIGNMENT_UNIT;
    return buffer[which] + GUARD + (aligned - from + (uintptr_t)align) / sizeof(float);
}

/* Bytes of the array and its two guards. */
static size_t padded_bytes(int32_t which) {
    return (size_t)(GUARD + used[which] + GUARD) * sizeof(float);
}

/* Bytes of the indices of an output, one for each of its elements, and of their two guards. */
static size_t index_bytes(void) {
    return GUARD + (size_t)used[ACTUAL] + GUARD;
}

static void restore(int32_t which) {
    memcpy(data(which) - GUARD, original[which], padded_bytes(which));
}

compare_layout compare_dense(int32_t count) {
    return compare_matrix(1, count, count);
}

compare_layout compare_matrix(int32_t rows, int32_t columns, int32_t ld) {
    const compare_layout layout = {{1, 1, rows, columns}, {0, 0, ld, 1}};
    return layout;
}

static int32_t elements_of(const compare_layout *layout) {
    return layout->extent[0] * layout->extent[1] * layout->extent[2] * layout->extent[3];
}

/* Of an element; the innermost axis is counted first. */
static int32_t offset_of(const compare_layout *layout, int32_t element) {
    int32_t offset = 0;
    for (int32_t i = 3; i >= 0; i--) {
        offset += element % layout->extent[i] * layout->stride[i];
        element /= layout->extent[i];
    }
    return offset;
}

static int32_t last_offset(const compare_layout *layout) {
    return offset_of(layout, elements_of(layout) - 1);
}

static float random_value(uint32_t key, uint32_t i, compare_values values) {
    const float u = ag_unitf(key + 1u, case_number, i);
    if (values == COMPARE_SMALL || values == COMPARE_ONES) {
        return values == COMPARE_SMALL ? 0x1p-13f : 1.0f;
    }
    if (values == COMPARE_UNIFORM) {
        return 2.0f * u - 1.0f;
    }
    const bool is_nan = values == COMPARE_NANS && ag_rand_u32(key + 4u, case_number, i) % 37u == 0u;
    return is_nan ? NAN : floorf(u * 16.0f) * 0.125f - 1.0f;
}

/* Only guards, around an array of so many floats and in its place, where they are returned. */
static float *guards(int32_t which, int32_t floats) {
    used[which] = floats;
    if (floats > MAX_FLOATS) {
        ag_print("a case is larger than its buffer\n");
        ag_system_exit(2);
    }
    for (int32_t i = GUARD + floats + GUARD - 1; i >= 0; i--) {
        original[which][i] = PAD;
    }
    at = next = 0;
    return original[which] + GUARD;
}

/* An array between guards; `all_nan` replaces its values. */
static void fill(int32_t which, const compare_layout *layout, compare_values values, bool all_nan) {
    float *const dst = guards(which, last_offset(layout) + 1);
    for (int32_t i = 0; i < elements_of(layout); i++) {
        dst[offset_of(layout, i)] = all_nan ? NAN : random_value((uint32_t)which, (uint32_t)i, values);
    }
    restore(which);
}

bool compare_matches(const compare_row *row, compare_attributes *attributes) {
    with_epilogue = output_is_s8 = small_products = false;
    bool any = false;
    for (int32_t i = 0; i < ALIGNMENTS; i++) {
        attributes->align = alignments[i];
        matches[i] = (compare_only_alignment == 0 || compare_only_alignment == alignments[i]);
        if (matches[i] && !row->when(attributes)) {
            tallies[i].skipped++;
            matches[i] = false;
        }
        tallies[i].cases += matches[i] ? 1u : 0u;
        any = any || matches[i];
    }
    case_number += any ? 1u : 0u;
    input_count = 0;
    return any;
}

static void add_input(int32_t slot) {
    restore(slot);
    input_count = slot >= input_count ? slot + 1 : input_count;
}

const float *compare_input(int32_t slot, compare_layout layout, compare_values values) {
    fill(slot, &layout, values, false);
    small_products = small_products || values == COMPARE_SMALL;
    add_input(slot);
    return data(slot);
}

uint32_t compare_random(uint32_t key, uint32_t number) {
    return ag_rand_u32(key, case_number, number);
}

void compare_input_s8(int32_t slot, compare_layout layout, bool small) {
    int8_t *const dst = (int8_t *)guards(slot, last_offset(&layout) / 4 + 1);
    for (int32_t i = 0; i < elements_of(&layout); i++) {
        const uint32_t u = compare_random(20u + (uint32_t)slot, (uint32_t)i), kind = u >> 28;
        const int32_t any = (int32_t)(u % 256u) - 128;
        const int32_t v = small ? any / 100 : kind < 2u ? -128 : kind < 4u ? 127 : any;
        dst[offset_of(&layout, i)] = (int8_t)v;
    }
    add_input(slot);
}

void compare_input_of_s8(int32_t slot, int32_t of, compare_layout layout, int32_t zero) {
    const int8_t *const q = (const int8_t *)(original[of] + GUARD);
    const int32_t count = last_offset(&layout) + 1;
    float *const dst = guards(slot, count);
    for (int32_t i = 0; i < count; i++) {
        dst[i] = (float)(q[i] - zero);
    }
    add_input(slot);
}

void compare_input_words(int32_t slot, const int32_t *words, int32_t count) {
    memcpy(guards(slot, count), words, (size_t)count * sizeof *words);
    add_input(slot);
}

/* The same first values for ref. */
static void copy_output(bool is_s8) {
    output_is_s8 = is_s8;
    used[EXPECTED] = used[MAGNITUDES] = used[ACTUAL];
    memcpy(data(EXPECTED) - GUARD, original[ACTUAL], padded_bytes(ACTUAL));
    memset(data(MAGNITUDES) - GUARD, 0, padded_bytes(ACTUAL));
    memset(index_buffers[2], 0xa5, index_bytes());
}

void compare_output(compare_layout layout, float beta) {
    fill(ACTUAL, &layout, small_products ? COMPARE_ONES : COMPARE_UNIFORM, beta == 0.0f);
    copy_output(false);
}

void compare_output_s8(compare_layout layout) {
    (void)guards(ACTUAL, last_offset(&layout) / 4 + 1);
    copy_output(true);
}

void compare_output_in_place_s8(int32_t slot) {
    memcpy(guards(ACTUAL, used[slot]), data(slot), (size_t)used[slot] * sizeof(float));
    copy_output(true);
}

void compare_draw_epilogue(const compare_attributes *attributes, int32_t channels, compare_layout result) {
    static const float limits[][2] = {{0.0f, 0.0f}, {0.0f, INFINITY}, {0.0f, 1.5f}, {-0.5f, 0.25f}};
    const uint32_t kind = epilogues / 4u % 8u;
    if (attributes->epilogue == 0) {
        return;
    }
    if (channels > MAX_CHANNELS) {
        ag_print("a case has more channels than its buffer\n");
        ag_system_exit(2);
    }
    for (int32_t i = 0; i < channels; i++) {
        for (int32_t k = 0; k < 2; k++) {
            channel_values[k][i] = random_value(11u + (uint32_t)k, (uint32_t)i, COMPARE_UNIFORM);
            channel_values[k + 2][i] = fabsf(channel_values[k][i]);
        }
    }
    epilogue.scale = (kind & 1u) != 0u ? channel_values[0] : NULL;
    epilogue.bias = (kind & 2u) != 0u ? channel_values[1] : NULL;
    epilogue.residual = (kind & 4u) != 0u ? compare_input(2, result, COMPARE_NANS) : NULL;
    epilogue.low = limits[epilogues % 4u][0];
    epilogue.high = limits[epilogues % 4u][1];
    of_magnitudes.scale = epilogue.scale == NULL ? NULL : channel_values[2];
    of_magnitudes.bias = epilogue.bias == NULL ? NULL : channel_values[3];
    epilogues++;
    with_epilogue = true;
}

int32_t *compare_indices(int32_t count, int32_t rows) {
    for (int32_t i = 0; i < count; i++) {
        indices[i] = (int32_t)(ag_rand_u32(9u, case_number, (uint32_t)i) % (uint32_t)rows);
    }
    return indices;
}

uint8_t *compare_input_index(void) {
    return index_buffers[0] + GUARD;
}

/* The next alignment at which the case is not skipped: inputs and output have their first values there. */
static bool next_alignment(compare_attributes *attributes) {
    while (next < ALIGNMENTS && !matches[next]) {
        next++;
    }
    if (next == ALIGNMENTS) {
        return false;
    }
    at = next++;
    attributes->align = alignments[at];
    for (int32_t slot = 0; slot < input_count; slot++) {
        restore(slot);
    }
    restore(ACTUAL);
    memset(index_buffers[1], 0xa5, index_bytes());
    return true;
}

static uint8_t *scratch(void) {
    return (uint8_t *)scratch_memory + GUARD + 4;
}

static void *prepared_scratch(const compare_attributes *attributes) {
    scratch_needed = 0;
    scratch_bytes = compare_rows[row_number].scratch(attributes);
    if (scratch_bytes > MAX_SCRATCH) {
        ag_print("a case needs more scratch memory than its buffer has\n");
        ag_system_exit(2);
    }
    memset(scratch_memory, 0xa5, GUARD + 4 + (size_t)scratch_bytes + GUARD);
    return scratch_bytes == 0 ? NULL : scratch();
}

void compare_scratch_needed(int32_t bytes) {
    scratch_needed = bytes > scratch_needed ? bytes : scratch_needed;
}

static bool scratch_has_guards(void) {
    const uint8_t *const from = scratch();
    bool same = scratch_needed <= scratch_bytes;
    for (int32_t i = 0; i < GUARD; i++) {
        same = same && from[i - GUARD] == 0xa5 && from[scratch_bytes + i] == 0xa5;
    }
    return same;
}

float *compare_actual(void) {
    return data(ACTUAL);
}

static void take_magnitudes(void) {
    for (int32_t slot = 0; slot < input_count; slot++) {
        float *array = data(slot);
        for (int32_t i = 0; i < used[slot]; i++) {
            array[i] = fabsf(original[slot][GUARD + i]);
        }
    }
}

static bool operands_are_unchanged(void) {
    bool same = true;
    for (int32_t slot = 0; slot < input_count; slot++) {
        same = same && memcmp(data(slot) - GUARD, original[slot], padded_bytes(slot)) == 0;
    }
    return same;
}

static bool output_has_guards(void) {
    const float *const from = data(ACTUAL);
    bool same = true;
    for (int32_t i = 0; i < GUARD; i++) {
        same = same && from[i - GUARD] == PAD && from[used[ACTUAL] + i] == PAD;
    }
    return same;
}

#if COMPARE_FORBID_GUARDS
void __asan_poison_memory_region(const volatile void *begin, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *begin, size_t bytes);

static void forbid(bool forbidden, const void *begin, size_t bytes) {
    (forbidden ? __asan_poison_memory_region : __asan_unpoison_memory_region)(begin, bytes);
}

/* AddressSanitizer, with which a backend's kernels are compiled, reports accesses of guards. */
static void forbid_guards(bool forbidden, const compare_call *c) {
    for (int32_t which = 0; which <= ACTUAL; which++) {
        if (which < input_count || which == ACTUAL) {
            forbid(forbidden, data(which) - GUARD, GUARD * sizeof(float));
            forbid(forbidden, data(which) + used[which], GUARD * sizeof(float));
        }
    }
    forbid(forbidden, c->index + used[ACTUAL], GUARD);
    if (c->scratch != NULL) {
        forbid(forbidden, scratch() + scratch_bytes, GUARD);
    }
}
#else
#define forbid_guards(forbidden, call) ((void)(call))
#endif

static void report(bool same, const compare_attributes *attributes) {
    if (same) {
        return;
    }
    if (++tallies[at].wrong <= MAX_PRINTED) {
        ag_print("wrong ");
        ag_print_i32(row_number, 0);
        ag_print(" ");
        ag_print_i32(alignments[at], 0);
        compare_rows[row_number].print(attributes);
        if (scratch_needed > scratch_bytes) {
            compare_print_int32_t("scratch", scratch_needed);
        }
        if (!output_has_guards()) {
            compare_print_int32_t("outside", 1);
        }
        ag_print("\n");
    }
}

static bool sums_are_close(const compare_attributes *attributes, int32_t terms) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    const float *magnitude = data(MAGNITUDES) - GUARD;
    const int32_t length = GUARD + used[ACTUAL] + GUARD;
    tally *const now = tallies + at;
    /* each term is rounded at most `terms` times in a sum, then by alpha, beta and the last addition, or by
     * the three steps of an epilogue */
    const float alpha = with_epilogue ? fmaxf(fabsf(attributes->alpha), 1.0f) : fabsf(attributes->alpha);
    const float roundings = (float)terms + (with_epilogue ? 4.0f : 3.0f);
    const float of_terms = 2.0f * EPSILON * roundings * alpha;
    const float of_beta = 2.0f * EPSILON * 3.0f * fabsf(attributes->beta);
    bool same = true;
    for (int32_t i = 0; i < length; i++) {
        if (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i]))) {
            continue;
        }
        const float bound = magnitude[i] == 0.0f ? 1e-44f : of_terms * magnitude[i] + of_beta;
        const float error = fabsf(actual[i] - expected[i]);
        same = same && error <= bound;
        if (error <= bound) {
            now->max_error = error > now->max_error ? error : now->max_error;
            now->max_error_over_bound =
                error > now->max_error_over_bound * bound ? error / bound : now->max_error_over_bound;
        }
    }
    return same;
}

/* Any NaN equals any other. */
static bool outputs_are_equal(void) {
    const float *actual = data(ACTUAL) - GUARD, *expected = data(EXPECTED) - GUARD;
    bool same = true;
    if (output_is_s8) {
        return memcmp(actual, expected, padded_bytes(ACTUAL)) == 0;
    }
    for (int32_t i = GUARD + used[ACTUAL] + GUARD - 1; i >= 0; i--) {
        same = same && (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i])));
    }
    return same;
}

static void check(const compare_attributes *attributes, int32_t terms) {
    const bool same = terms > 0 ? sums_are_close(attributes, terms) : outputs_are_equal();
    report(same && memcmp(index_buffers[1], index_buffers[2], index_bytes()) == 0 &&
               operands_are_unchanged() && scratch_has_guards(),
           attributes);
}

compare_call compare_sums(int32_t terms) {
    return (compare_call){.terms = terms};
}

compare_call compare_exactly(void) {
    return compare_sums(0);
}

bool compare_next(compare_call *c, compare_attributes *attributes) {
    const bool expected = c->calls == 0, magnitudes = c->calls == 1 && c->terms > 0;
    if (c->calls > 0 && !c->of_ref) {
        forbid_guards(false, c);
        check(attributes, c->terms);
    }
    c->of_ref = expected || magnitudes;
    c->of_magnitudes = magnitudes;
    if (!c->of_ref && !next_alignment(attributes)) {
        return false;
    }
    if (magnitudes) {
        take_magnitudes();
    }
    for (int32_t slot = 0; slot < INPUTS; slot++) {
        c->in[slot] = data(slot);
        c->in_s8[slot] = (const int8_t *)data(slot);
    }
    epilogue.residual = of_magnitudes.residual = epilogue.residual == NULL ? NULL : data(2);
    c->epilogue = !with_epilogue ? NULL : magnitudes ? &of_magnitudes : &epilogue;
    c->alpha = magnitudes ? 1.0f : attributes->alpha;
    c->beta = magnitudes ? 0.0f : attributes->beta;
    c->out = data(expected ? EXPECTED : magnitudes ? MAGNITUDES : ACTUAL);
    c->out_s8 = (int8_t *)c->out;
    c->index = index_buffers[c->of_ref ? 2 : 1] + GUARD;
    c->scratch = c->of_ref ? NULL : prepared_scratch(attributes);
    c->calls++;
    if (!c->of_ref) {
        forbid_guards(true, c);
    }
    return true;
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

static void print_tally(int32_t alignment) {
    const tally *const t = tallies + alignment;
    const uint32_t counts[] = {t->cases, t->skipped, t->wrong};
    ag_print("done ");
    ag_print_i32(row_number, 0);
    ag_print(" ");
    ag_print_i32(alignments[alignment], 0);
    for (int32_t i = 0; i < 3; i++) {
        ag_print(" ");
        ag_print_u32(counts[i], 0);
    }
    ag_print(" ");
    ag_print_e32(t->max_error, 0, 3);
    ag_print(" ");
    ag_print_f32(t->max_error_over_bound, 0, 3);
    ag_print("\n");
}

int main(void) {
    for (row_number = 0; row_number < compare_row_count; row_number++) {
        ag_print("begin ");
        ag_print_i32(row_number, 0);
        ag_print("\n");
        memset(tallies, 0, sizeof tallies);
        case_number = 0;
        compare_rows[row_number].cases(&compare_rows[row_number]);
        for (int32_t i = 0; i < ALIGNMENTS; i++) {
            if (compare_only_alignment == 0 || compare_only_alignment == alignments[i]) {
                print_tally(i);
            }
        }
    }
    return 0;
}
