/* All rows of a backend over their cases, with arrays at each alignment. For autodiff-gen test-kernels, which
 * reads the lines:
 *
 *     begin ROW ALIGN
 *     wrong ROW ALIGN the case
 *     done ROW ALIGN cases left-out wrong worst-error worst-error/bound */
#include "compare.h"

#include "ag_console.h"
#include "ag_rng.h"
#include "ag_system.h"

#include <math.h>
#include <string.h>

enum { GUARD = 32, MOST = 1280, REGION = GUARD + MOST + GUARD, COARSE = 128, SHOWN = 2 };
enum { INPUTS = 3, MINE = INPUTS, THEIRS, MAGNITUDES, BUFFERS };
static const float PAD = -7.625e30f, EPSILON = 5.9604645e-08f;
#if defined __SOFTFP__
static const int32_t alignments[] = {4}; /* no FPU: nothing is loaded by more than words */
#else
static const int32_t alignments[] = {64, 16, 8, 4};
#endif

const float compare_scales[COMPARE_SCALES][2] = {
    {1.0f, 0.0f}, {-0.01f, 1.0f}, {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};

static float buffer[BUFFERS][REGION + 2 * COARSE / 4];
static int32_t indices[MOST];
static uint8_t places[3][REGION];
static uint32_t sum_before[INPUTS];
static int32_t align, input_count;
static compare_area output_area;

static uint32_t cases, left_out, wrong;
static float worst, worst_of_bound;
static int32_t row_number;

/* The first float of an array; its guard lies before it. */
static float *data(int32_t which) {
    const uintptr_t from = (uintptr_t)(buffer[which] + GUARD);
    const uintptr_t coarse = (from + COARSE - 1) / COARSE * COARSE;
    return buffer[which] + GUARD + (coarse - from + (uintptr_t)align) / sizeof(float);
}

static void fill(int32_t which, float value) {
    float *region = data(which) - GUARD;
    for (int32_t i = 0; i < REGION; i++) {
        region[i] = value;
    }
}

static uint32_t checksum(int32_t which) {
    const float *region = data(which) - GUARD;
    uint32_t sum = 0;
    for (int32_t i = 0; i < REGION; i++) {
        uint32_t bits;
        memcpy(&bits, region + i, sizeof bits);
        sum = sum * 31u + bits;
    }
    return sum;
}

compare_area compare_dense(int32_t count) {
    return compare_matrix(1, count, count);
}

compare_area compare_matrix(int32_t rows, int32_t columns, int32_t ld) {
    const compare_area area = {{1, 1, rows, columns}, {0, 0, ld, 1}};
    return area;
}

static int32_t last(const compare_area *area) {
    int32_t at = 0;
    for (int32_t i = 0; i < 4; i++) {
        at += (area->extent[i] - 1) * area->stride[i];
    }
    return at;
}

/* Where element i of an area lies, counted innermost first. */
static int32_t place(const compare_area *area, int32_t i) {
    int32_t at = 0;
    for (int32_t axis = 3; axis >= 0; axis--) {
        at += i % area->extent[axis] * area->stride[axis];
        i /= area->extent[axis];
    }
    return at;
}

static int32_t count_of(const compare_area *area) {
    return area->extent[0] * area->extent[1] * area->extent[2] * area->extent[3];
}

static void draw(int32_t which, const compare_area *area, compare_values values) {
    if (last(area) >= MOST) {
        ag_print("a case is larger than its buffer\n");
        ag_system_exit(2);
    }
    float *to = data(which);
    for (int32_t i = 0; i < count_of(area); i++) {
        const float u = ag_unitf((uint32_t)which + 1u, cases, (uint32_t)i);
        float value = values == COMPARE_UNIFORM ? 2.0f * u - 1.0f : floorf(u * 16.0f) * 0.125f - 1.0f;
        if (values == COMPARE_NANS && ag_rand_u32((uint32_t)which + 4u, cases, (uint32_t)i) % 37u == 0u) {
            value = NAN;
        }
        to[place(area, i)] = value;
    }
}

bool compare_admits(const compare_row *row, compare_facts *facts) {
    facts->align = align;
    input_count = 0;
    if (!row->when(facts)) {
        left_out++;
        return false;
    }
    cases++;
    return true;
}

float *compare_input(int32_t slot, compare_area area, compare_values values) {
    fill(slot, PAD);
    draw(slot, &area, values);
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

uint8_t *compare_places(void) {
    return places[0] + GUARD;
}

void compare_output(compare_area area, float beta) {
    output_area = area;
    fill(MINE, PAD);
    draw(MINE, &area, COMPARE_UNIFORM);
    if (beta == 0.0f) {
        for (int32_t i = 0; i < count_of(&area); i++) {
            data(MINE)[place(&area, i)] = NAN;
        }
    }
    memcpy(data(THEIRS) - GUARD, data(MINE) - GUARD, REGION * sizeof(float));
    fill(MAGNITUDES, 0.0f);
    memset(places[1], 0xa5, sizeof places[1]);
    memset(places[2], 0xa5, sizeof places[2]);
}

float *compare_mine(void) {
    return data(MINE);
}

float *compare_theirs(void) {
    return data(THEIRS);
}

float *compare_magnitudes(void) {
    return data(MAGNITUDES);
}

uint8_t *compare_my_places(void) {
    return places[1] + GUARD;
}

uint8_t *compare_their_places(void) {
    return places[2] + GUARD;
}

static bool operands_are_left_alone(void) {
    bool same = true;
    for (int32_t slot = 0; slot < input_count; slot++) {
        same = same && checksum(slot) == sum_before[slot];
    }
    return same;
}

void compare_take_magnitudes(void) {
    if (!operands_are_left_alone()) {
        data(MINE)[0] = PAD; /* which is seen as a wrong result */
    }
    for (int32_t slot = 0; slot < input_count; slot++) {
        float *region = data(slot) - GUARD;
        for (int32_t i = 0; i < REGION; i++) {
            region[i] = fabsf(region[i]);
        }
    }
}

static void report(bool same, const compare_facts *facts, void (*say)(const compare_facts *facts)) {
    if (same) {
        return;
    }
    if (++wrong <= SHOWN) {
        ag_print("wrong ");
        ag_print_i32(row_number, 0);
        ag_print(" ");
        ag_print_i32(align, 0);
        say(facts);
        ag_print("\n");
    }
}

void compare_check(const compare_facts *facts, int32_t terms, void (*say)(const compare_facts *facts)) {
    const float *mine = data(MINE) - GUARD, *theirs = data(THEIRS) - GUARD;
    const float *magnitude = data(MAGNITUDES) - GUARD;
    bool same = true;
    for (int32_t i = 0; i < REGION; i++) {
        if (mine[i] == theirs[i]) {
            continue;
        }
        /* each term meets at most `terms` roundings in a sum, then alpha, beta and the last addition */
        const float rounding =
            ((float)terms + 3.0f) * fabsf(facts->alpha) * magnitude[i] + 3.0f * fabsf(facts->beta);
        const float bound = magnitude[i] == 0.0f ? 1e-44f : 2.0f * EPSILON * rounding;
        const float error = fabsf(mine[i] - theirs[i]);
        same = same && error <= bound;
        if (error <= bound) {
            worst = error > worst ? error : worst;
            worst_of_bound = error > worst_of_bound * bound ? error / bound : worst_of_bound;
        }
    }
    report(same, facts, say);
}

void compare_check_exact(const compare_facts *facts, void (*say)(const compare_facts *facts)) {
    const float *mine = data(MINE) - GUARD, *theirs = data(THEIRS) - GUARD;
    bool same = operands_are_left_alone() && memcmp(places[1], places[2], sizeof places[1]) == 0;
    for (int32_t i = 0; i < REGION; i++) {
        same = same && (mine[i] == theirs[i] || (isnan(mine[i]) && isnan(theirs[i])));
    }
    report(same, facts, say);
}

void compare_say(const char *name, int32_t value) {
    ag_print(" ");
    ag_print(name);
    ag_print("=");
    ag_print_i32(value, 0);
}

void compare_say_scales(const compare_facts *facts) {
    ag_print(" alpha=");
    ag_print_f32(facts->alpha, 0, 2);
    ag_print(" beta=");
    ag_print_f32(facts->beta, 0, 2);
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
            cases = left_out = wrong = 0;
            worst = worst_of_bound = 0.0f;
            phase("begin ");
            ag_print("\n");
            compare_rows[row_number].cases(&compare_rows[row_number]);
            phase("done ");
            ag_print(" ");
            ag_print_u32(cases, 0);
            ag_print(" ");
            ag_print_u32(left_out, 0);
            ag_print(" ");
            ag_print_u32(wrong, 0);
            ag_print(" ");
            ag_print_e32(worst, 0, 3);
            ag_print(" ");
            ag_print_f32(worst_of_bound, 0, 3);
            ag_print("\n");
        }
    }
    return 0;
}
