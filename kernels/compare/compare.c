/* Runs every kernel row of a backend on its test cases, with arrays at each alignment. `ref` computes the
 * expected values of a case once, since they do not depend on the alignment. For autodiff-gen test-kernels,
 * which parses these lines:
 *
 *     begin ROW
 *     wrong ROW ALIGN the case, scratch=BYTES where its row's formula says fewer, outside=1 for other writes,
 *         without_scratch=1 where it had none
 *     done ROW ALIGN cases skipped wrong max-error max-error/bound */
#include "arrays.h"

#include "ag_console.h"

#include <math.h>
#include <string.h>

enum { MAX_PRINTED = 2 };
static const float EPSILON = 5.9604645e-08f;

const float compare_scales[COMPARE_SCALES][2] = {
    {1.0f, 0.0f}, {-0.01f, 1.0f}, {0.5f, -2.0f}, {0.0f, 0.0f}, {0.0f, 1.0f}};

typedef struct tally {
    uint32_t cases, skipped, wrong;
    float max_error, max_error_over_bound;
} tally;

static tally tallies[ALIGNMENTS];
static bool matches[ALIGNMENTS]; /* whether the case meets the row's conditions */
static bool has_magnitudes;      /* whether ref has computed them for the case */
static uint32_t case_number;
static int32_t row_number;

static bool writes_integers(const compare_row *row) {
    return compare_output_array(row)->type == 'B';
}

static void call_ref(const compare_row *row, const compare_attributes *f, int32_t which) {
    const compare_call c = compare_call_of(row, f, which);
    (f->reference != NULL ? f->reference : row->call)(f, &c);
}

/* Whether the floats of two results are equal, or for sums equal up to rounding. Any NaN equals any other.
 * For sums, the inputs become their magnitudes. */
static bool floats_agree(const compare_row *row, const compare_attributes *f, tally *now) {
    int32_t floats;
    const float *const actual = compare_result(ACTUAL, &floats);
    const float *const expected = compare_result(EXPECTED, &floats);
    const float *const magnitude = compare_result(MAGNITUDES, &floats);
    /* each term is rounded at most `terms` times in a sum, then by alpha, beta and the last addition, or by
     * the three steps of an epilogue */
    const bool finished = f->epilogue != 0;
    const float alpha = finished ? fmaxf(fabsf(f->alpha), 1.0f) : fabsf(f->alpha);
    const float of_terms = 2.0f * EPSILON * ((float)f->terms + (finished ? 4.0f : 3.0f)) * alpha;
    const float of_beta = 2.0f * EPSILON * 3.0f * fabsf(f->beta);
    bool same = true;
    if (f->terms > 0 && !has_magnitudes) {
        compare_take_magnitudes();
        call_ref(row, f, MAGNITUDES);
        has_magnitudes = true;
    }
    for (int32_t i = 0; i < floats; i++) {
        if (actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i]))) {
            continue;
        }
        const float of_sum = magnitude[i] == 0.0f ? 1e-44f : of_terms * magnitude[i] + of_beta;
        const float bound = f->terms == 0 ? 0.0f : of_sum, error = fabsf(actual[i] - expected[i]);
        if (error <= bound) {
            const float over_bound = error / bound;
            now->max_error = error > now->max_error ? error : now->max_error;
            now->max_error_over_bound =
                over_bound > now->max_error_over_bound ? over_bound : now->max_error_over_bound;
        } else {
            same = false;
        }
    }
    return same;
}

static bool outputs_agree(const compare_row *row, const compare_attributes *f, tally *now) {
    int32_t floats;
    const float *const actual = compare_result(ACTUAL, &floats);
    const float *const expected = compare_result(EXPECTED, &floats);
    return compare_bits_are_equal(actual, expected, floats) ||
           (!writes_integers(row) && floats_agree(row, f, now));
}

static void check(const compare_row *row, const compare_attributes *f, int32_t alignment) {
    tally *const now = tallies + alignment;
    if (compare_indices_agree() && compare_operands_are_unchanged() && outputs_agree(row, f, now)) {
        return;
    }
    if (++now->wrong <= MAX_PRINTED) {
        ag_print("wrong ");
        ag_print_i32(row_number, 0);
        ag_print(" ");
        ag_print_i32(alignments[alignment], 0);
        row->print(f);
        if (compare_scratch_excess() > 0) {
            compare_print_int32_t("scratch", compare_scratch_excess());
        }
        if (!compare_output_has_guards()) {
            compare_print_int32_t("outside", 1);
        }
        if (f->without_scratch) {
            compare_print_int32_t("without_scratch", 1);
        }
        ag_print("\n");
    }
}

static void call_kernel(const compare_row *row, const compare_attributes *f) {
    const compare_call c = compare_call_of(row, f, ACTUAL);
    compare_forbid_guards(true, &c);
    row->call(f, &c);
    compare_forbid_guards(false, &c);
}

void compare_case(const compare_row *row, compare_attributes *f) {
    const int32_t calls = row->scratch_optional ? 2 : 1;
    bool any = false;
    for (int32_t i = 0; i < ALIGNMENTS; i++) {
        const bool tested = compare_only_alignment == 0 || compare_only_alignment == alignments[i];
        f->align = alignments[i];
        matches[i] = tested && row->when(f);
        tallies[i].cases += matches[i] ? (uint32_t)calls : 0;
        tallies[i].skipped += tested && !matches[i];
        any = any || matches[i];
    }
    if (!any) {
        return;
    }
    compare_prepare(row, f, ++case_number);
    has_magnitudes = false;
    call_ref(row, f, EXPECTED);
    for (int32_t i = 0; i < ALIGNMENTS; i++) {
        for (int32_t k = 0; k < (matches[i] ? calls : 0); k++) {
            f->align = alignments[i];
            f->without_scratch = k > 0;
            compare_restore(i);
            call_kernel(row, f);
            check(row, f, i);
        }
    }
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
