/* The arrays of a case, in buffers between guards: their values, the arguments of a call, and memory that a
 * call may not change. */
#include "arrays.h"

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
    MAX_SCRATCH = COMPARE_FLOATS < COMPARE_LARGE ? 14400
    : COMPARE_FLOATS < COMPARE_HOST              ? 28800
                                                 : 115200
};
enum { INPUTS = ACTUAL, BUFFERS = MAGNITUDES + 1 };
static const float PAD = -7.625e30f;

static float buffer[BUFFERS][PADDED + 2 * ALIGNMENT_UNIT / 4];
static float original[INPUTS + 1][PADDED]; /* of the inputs and the output before the call, with guards */
static int32_t indices[MAX_FLOATS];
static uint8_t index_buffers[3][PADDED];
static float channel_values[4][MAX_CHANNELS]; /* scales, biases, and their magnitudes */
static ag_epilogue epilogue, of_magnitudes;
static uint32_t epilogues;
static int32_t scales[3 * MAX_CHANNELS]; /* biases, multipliers, and shifts as the last bytes */
static int32_t input_count;
static int32_t used[BUFFERS]; /* floats of the array, without its guards */
static uint64_t
    scratch_memory[(GUARD + MAX_SCRATCH + GUARD) / 8 + 1]; /* the used part is at no multiple of 8 */
static int32_t scratch_bytes, scratch_needed;
static int32_t at; /* the alignment of inputs and output */
static uint32_t case_number;

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

compare_layout compare_matrix(int32_t rows, int32_t columns, int32_t ld) {
    const compare_layout layout = {{1, 1, rows, columns}, {0, 0, ld, 1}};
    return layout;
}

static int32_t elements_of(const compare_layout *layout) {
    return layout->extent[0] * layout->extent[1] * layout->extent[2] * layout->extent[3];
}

/* The offset of an element. Elements are numbered so that the last axis changes fastest. */
static int32_t offset_of(const compare_layout *layout, int32_t element) {
    int32_t offset = 0;
    for (int32_t i = 3; i >= 0; i--) {
        offset += element % layout->extent[i] * layout->stride[i];
        element /= layout->extent[i];
    }
    return offset;
}

int32_t compare_size(const compare_attributes *f, char letter) {
    const struct {
        char letter;
        int32_t number;
    } sizes[] = {{'1', 1},       {'m', f->m},     {'n', f->n},    {'k', f->k},
                 {'A', f->lda},  {'B', f->ldb},   {'C', f->ldc},  {'o', f->outer},
                 {'r', f->rows}, {'c', f->count}, {'i', f->inner}};
    int32_t i = 0;
    while (sizes[i].letter != letter) {
        i++;
    }
    return sizes[i].number;
}

static compare_layout layout_of(const compare_attributes *f, const char *name) {
    const char *p = f->sizes;
    int32_t rows = 1, columns = 1;
    if (f->layout != NULL) {
        return f->layout(f, name);
    }
    while (p[0] != *name || p[1] != '=') {
        p++;
    }
    for (p += 2; *p > ' '; p++) {
        if (*p <= 'C') {
            return compare_matrix(rows, columns, compare_size(f, *p));
        }
        rows *= columns;
        columns = compare_size(f, *p);
    }
    return compare_matrix(rows, columns, columns);
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

static void check_size(int32_t size, int32_t most, const char *error) {
    if (size > most) {
        ag_print(error);
        ag_system_exit(2);
    }
}

/* Fills an array of so many floats, and the guards around it, with the value of guards. Returns the array in
 * `original`. */
static float *guards(int32_t which, int32_t floats) {
    used[which] = floats;
    check_size(floats, MAX_FLOATS, "a case is larger than its buffer\n");
    for (int32_t i = GUARD + floats + GUARD - 1; i >= 0; i--) {
        original[which][i] = PAD;
    }
    at = 0;
    return original[which] + GUARD;
}

/* An array between guards; `all_nan` replaces its values. */
static void fill(int32_t which, const compare_layout *layout, compare_values values, bool all_nan) {
    float *const dst = guards(which, last_offset(layout) + 1);
    for (int32_t i = 0; i < elements_of(layout); i += layout->extent[3]) {
        float *p = dst + offset_of(layout, i);
        for (int32_t j = i; j < i + layout->extent[3]; j++) {
            *p = all_nan ? NAN : random_value((uint32_t)which, (uint32_t)j, values);
            p += layout->stride[3];
        }
    }
    restore(which);
}

static void add_input(int32_t slot) {
    restore(slot);
    input_count = slot >= input_count ? slot + 1 : input_count;
}

const float *compare_input(int32_t slot, compare_layout layout, compare_values values) {
    fill(slot, &layout, values == COMPARE_NANS && slot > 0 ? COMPARE_EIGHTHS : values, false);
    add_input(slot);
    return data(slot);
}

uint8_t *compare_input_index(void) {
    return index_buffers[0] + GUARD;
}

/* 8-bit integers, many of them extremes: from -128 to 127, or if `small` -1, 0 and 1. */
static void input_s8(int32_t slot, compare_layout layout, bool small) {
    int8_t *const dst = (int8_t *)guards(slot, last_offset(&layout) / 4 + 1);
    for (int32_t i = 0; i < elements_of(&layout); i++) {
        const uint32_t u = ag_rand_u32(20u + (uint32_t)slot, case_number, (uint32_t)i), kind = u >> 28;
        const int32_t any = (int32_t)(u % 256u) - 128;
        const int32_t v = small ? any / 100 : kind < 2u ? -128 : kind < 4u ? 127 : any;
        dst[offset_of(&layout, i)] = (int8_t)v;
    }
    add_input(slot);
}

/* Slot 2: the floats of the integers in another slot, less zero, for a reference of floats. */
static void input_of_s8(int32_t slot, int32_t zero) {
    const int8_t *const q = (const int8_t *)(original[slot] + GUARD);
    float *const dst = guards(2, 4 * used[slot]);
    for (int32_t i = 0; i < used[2]; i++) {
        dst[i] = (float)(q[i] - zero);
    }
    add_input(2);
}

static int32_t words_of_scales(int32_t channels) {
    return 2 * channels + (channels + 3) / 4;
}

/* Slot 2: bias, multiplier and shift of each channel, for sums of `terms` products: most results are between
 * the limits, some shifts are the largest or the smallest possible. */
static void input_scales(const compare_attributes *f) {
    const int32_t channels = f->channels, words = words_of_scales(channels);
    const bool small = f->small == 'w';
    const int32_t bias = small ? 100 : 10000;
    int8_t *const shifts = (int8_t *)(scales + words) - channels;
    int32_t needed = 0;
    for (int32_t v = f->terms * 255 * (small ? 1 : 128) + bias; v > 0; v /= 2) {
        needed++;
    }
    for (int32_t i = 0; i < channels; i++) {
        const uint32_t number = f->per_channel != 0 ? (uint32_t)i : 0u;
        const uint32_t u = ag_rand_u32(31u, case_number, number);
        const uint32_t kind = ag_rand_u32(32u, case_number, number) % 16u;
        const int32_t shift = 8 - needed + (int32_t)(u % 6u) - 2;
        scales[i] = (int32_t)(ag_rand_u32(33u, case_number, (uint32_t)i) % (2u * (uint32_t)bias)) - bias;
        scales[channels + i] = kind == 0u ? INT32_MAX : kind == 1u ? 0 : (int32_t)(1u << 30 | u >> 2);
        shifts[i] = (int8_t)(kind == 2u ? -31 : kind == 3u ? 31 - needed : shift);
    }
    memcpy(guards(2, words), scales, (size_t)words * sizeof *scales);
    add_input(2);
}

static void input_indices(compare_layout layout, int32_t rows) {
    for (int32_t i = 0; i < elements_of(&layout); i++) {
        indices[i] = (int32_t)(ag_rand_u32(9u, case_number, (uint32_t)i) % (uint32_t)rows);
    }
}

float *compare_output(compare_layout layout, float beta) {
    fill(ACTUAL, &layout, COMPARE_UNIFORM, beta == 0.0f);
    restore(ACTUAL);
    return data(ACTUAL);
}

static void draw_epilogue(const compare_attributes *f, const compare_layout *result) {
    static const float limits[][2] = {{0.0f, 0.0f}, {0.0f, INFINITY}, {0.0f, 1.5f}, {-0.5f, 0.25f}};
    const uint32_t kind = epilogues / 4u % 8u;
    for (int32_t i = 0; i < f->channels; i++) {
        for (int32_t k = 0; k < 2; k++) {
            channel_values[k][i] = random_value(11u + (uint32_t)k, (uint32_t)i, COMPARE_UNIFORM);
            channel_values[k + 2][i] = fabsf(channel_values[k][i]);
        }
    }
    epilogue.scale = (kind & 1u) != 0u ? channel_values[0] : NULL;
    epilogue.bias = (kind & 2u) != 0u ? channel_values[1] : NULL;
    epilogue.residual = NULL;
    if ((kind & 4u) != 0u) {
        fill(2, result, COMPARE_NANS, false);
        add_input(2);
        epilogue.residual = data(2);
    }
    epilogue.low = limits[epilogues % 4u][0];
    epilogue.high = limits[epilogues % 4u][1];
    of_magnitudes.scale = epilogue.scale == NULL ? NULL : channel_values[2];
    of_magnitudes.bias = epilogue.bias == NULL ? NULL : channel_values[3];
    epilogues++;
}

const compare_array *compare_output_array(const compare_row *row) {
    const compare_array *a = row->arrays;
    while (a->type > 'Z') {
        a++;
    }
    return a;
}

void compare_prepare(const compare_row *row, const compare_attributes *f, uint32_t number) {
    const compare_array *const output = compare_output_array(row);
    const compare_layout layout = layout_of(f, output->name);
    int32_t slot = 0;
    case_number = number;
    input_count = 0;
    check_size(f->channels, MAX_CHANNELS, "a case has more channels than its buffer\n");
    if (f->index != NULL) {
        f->index(f);
    }
    for (const compare_array *a = row->arrays; a->name != NULL; a++) {
        if (a->type == 'f') {
            compare_input(slot++, layout_of(f, a->name), f->values);
        } else if (a->type == 'b') {
            input_s8(slot++, layout_of(f, a->name), f->small == *a->name);
            if (output->type != 'B') {
                input_of_s8(slot - 1, *a->name == 'x' ? f->x_zero : 0);
            }
        } else if (a->type == 'n') {
            input_indices(layout_of(f, a->name), f->rows);
        } else if (a->type == 'w') {
            input_scales(f);
        }
    }
    if (f->in_place) {
        memcpy(guards(ACTUAL, used[0]), data(0), (size_t)used[0] * sizeof(float));
    } else if (output->type == 'B') {
        (void)guards(ACTUAL, last_offset(&layout) / 4 + 1);
    } else {
        fill(ACTUAL, &layout, f->values == COMPARE_SMALL ? COMPARE_ONES : COMPARE_UNIFORM, f->beta == 0.0f);
    }
    used[EXPECTED] = used[MAGNITUDES] = used[ACTUAL];
    memcpy(data(EXPECTED) - GUARD, original[ACTUAL], padded_bytes(ACTUAL));
    memset(data(MAGNITUDES) - GUARD, 0, padded_bytes(ACTUAL));
    memset(index_buffers[2], 0xa5, index_bytes());
    if (f->epilogue != 0) {
        draw_epilogue(f, &layout);
    }
}

static uint8_t *scratch(void) {
    return (uint8_t *)scratch_memory + GUARD + 4;
}

static void *prepared_scratch(const compare_row *row, const compare_attributes *f) {
    scratch_needed = 0;
    scratch_bytes = row->scratch(f);
    check_size(scratch_bytes, MAX_SCRATCH, "a case needs more scratch memory than its buffer has\n");
    memset(scratch_memory, 0xa5, GUARD + 4 + (size_t)scratch_bytes + GUARD);
    return scratch_bytes == 0 || f->without_scratch ? NULL : scratch();
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

void compare_take_magnitudes(void) {
    for (int32_t slot = 0; slot < input_count; slot++) {
        float *array = data(slot);
        for (int32_t i = 0; i < used[slot]; i++) {
            array[i] = fabsf(original[slot][GUARD + i]);
        }
    }
}

bool compare_bits_are_equal(const float *a, const float *b, int32_t floats) {
    bool same = true;
    for (int32_t i = 0; i < floats && same; i++) {
        uint32_t of_a, of_b;
        memcpy(&of_a, a + i, sizeof of_a);
        memcpy(&of_b, b + i, sizeof of_b);
        same = of_a == of_b;
    }
    return same;
}

bool compare_operands_are_unchanged(void) {
    bool same = scratch_has_guards();
    for (int32_t slot = 0; slot < input_count; slot++) {
        const int32_t floats = GUARD + used[slot] + GUARD;
        same = same && compare_bits_are_equal(data(slot) - GUARD, original[slot], floats);
    }
    return same;
}

bool compare_output_has_guards(void) {
    const float *const from = data(ACTUAL);
    bool same = true;
    for (int32_t i = 0; i < GUARD; i++) {
        same = same && from[i - GUARD] == PAD && from[used[ACTUAL] + i] == PAD;
    }
    return same;
}

compare_call compare_call_of(const compare_row *row, const compare_attributes *f, int32_t which) {
    const bool magnitudes = which == MAGNITUDES;
    const int32_t *const words = (const int32_t *)data(2);
    compare_call c = {.of_ref = which != ACTUAL, .indices = indices, .selected = compare_input_index()};
    for (int32_t slot = 0; slot < INPUTS; slot++) {
        c.in[slot] = data(slot);
    }
    c.bias = words;
    c.multiplier = words + f->channels;
    c.shift = (const int8_t *)(words + words_of_scales(f->channels)) - f->channels;
    c.out = data(which);
    c.index = index_buffers[c.of_ref ? 2 : 1] + GUARD;
    epilogue.residual = of_magnitudes.residual = epilogue.residual == NULL ? NULL : data(2);
    c.epilogue = f->epilogue == 0 ? NULL : magnitudes ? &of_magnitudes : &epilogue;
    c.alpha = magnitudes ? 1.0f : f->alpha;
    c.beta = magnitudes ? 0.0f : f->beta;
    if (!c.of_ref) {
        c.scratch = prepared_scratch(row, f);
        c.in[0] = f->in_place ? c.out : c.in[0];
    }
    return c;
}

void compare_restore(int32_t alignment) {
    at = alignment;
    for (int32_t slot = 0; slot < input_count; slot++) {
        restore(slot);
    }
    restore(ACTUAL);
    memset(index_buffers[1], 0xa5, index_bytes());
}

bool compare_indices_agree(void) {
    return memcmp(index_buffers[1], index_buffers[2], index_bytes()) == 0;
}

const float *compare_result(int32_t which, int32_t *floats) {
    *floats = GUARD + used[ACTUAL] + GUARD;
    return data(which) - GUARD;
}

int32_t compare_scratch_excess(void) {
    return scratch_needed > scratch_bytes ? scratch_needed : 0;
}

#if COMPARE_FORBID_GUARDS
void __asan_poison_memory_region(const volatile void *begin, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *begin, size_t bytes);

static void forbid(bool forbidden, const void *begin, size_t bytes) {
    (forbidden ? __asan_poison_memory_region : __asan_unpoison_memory_region)(begin, bytes);
}

void compare_forbid_guards(bool forbidden, const compare_call *c) {
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
void compare_forbid_guards(bool forbidden, const compare_call *c) {
    (void)forbidden, (void)c;
}
#endif
