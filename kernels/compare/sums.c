/* Sums by index, cumulative sums, and copies of rows. */
#include "compare.h"

static const int32_t extents[][4] = {{1, 1, 1, 1},  {1, 4, 9, 3},  {2, 7, 5, 4}, {3, 2, 6, 1},
                                     {1, 5, 3, 17}, {2, 3, 11, 5}, {1, 1, 8, 9}, {1, 30, 4, 16}};

/* Arrays of these sizes, with the first `scales` of compare_scales, each forwards and in reverse; with
 * `in_place` also where y is x. */
static void all(const compare_row *row, const char *sizes, uint32_t scales, bool in_place) {
    for (uint32_t i = 0; i < COMPARE_COUNT(extents); i++) {
        const int32_t *e = extents[i];
        for (uint32_t k = 0; k < (in_place ? 4 : 2) * scales; k++) {
            compare_attributes f = {
                .outer = e[0], .rows = e[1], .count = e[2], .inner = e[3], .sizes = sizes};
            f.terms = f.count;
            f.reverse = (int32_t)(k % 2);
            f.in_place = k >= 2 * scales;
            f.alpha = compare_scales[k / 2 % scales][0];
            f.beta = compare_scales[k / 2 % scales][1];
            compare_case(row, &f);
        }
    }
}

/* Gaps between the rows of x or of y. */
static void all_copies(const compare_row *row) {
    for (uint32_t i = 0; i < 2 * COMPARE_COUNT(extents); i++) {
        const int32_t *e = extents[i / 2], wide = (int32_t)(i % 2);
        compare_attributes f = {.m = e[1], .n = e[2], .sizes = "x=mnA y=mnC"};
        f.lda = f.n + wide * e[3];
        f.ldc = f.n + (1 - wide) * e[3];
        compare_case(row, &f);
    }
}

COMPARE_CASES(scatter_sum_f32, all(row, "i=oci x=oci y=ori", 1, false))
COMPARE_CASES(index_sum_f32, all(row, "i=c x=oci y=ori", COMPARE_SCALES, false))
COMPARE_CASES(cumsum_f32, all(row, "x=oci y=oci", 1, true))
COMPARE_CASES(copy_rows_f32, all_copies(row))
