/* Compares the kernels of a backend with `ref` on the core that the program runs on; shared by all kernel
 * families. The table of kernel rows is generated for one backend by `autodiff-gen test-kernels`.
 *
 * Every array is in a separate buffer at an address that is a multiple of the tested alignment and of no
 * more, between guards of values so large that one of them in a sum is noticed, and that no kernel may
 * change. */
#ifndef COMPARE_H
#define COMPARE_H

#include "ag_kernels.h"

#include <stdbool.h>

#ifndef COMPARE_FLOATS
#define COMPARE_FLOATS 1280 /* of an array: what the smallest board has RAM for */
#endif
#define COMPARE_LARGE 8192 /* of those that have room for the large cases */

/* The attributes of a call that conditions in kernels.toml compare. */
typedef struct compare_attributes {
    int32_t m, n, k, lda, ldb, ldc, outer, rows, count, inner, reverse, epilogue, align;
    int32_t x_zero, y_zero, low, high, per_channel, multiplier, shift, least;
    float alpha, beta;
    ag_conv2d_shape conv2d_shape;
    ag_conv2d_pool_shape conv2d_pool_shape;
    ag_pool2d_shape pool2d_shape;
} compare_attributes;

typedef void compare_any(void); /* the type of any kernel */

typedef struct compare_row {
    const char *kernel, *symbol;
    compare_any *function;
    bool (*when)(const compare_attributes *attributes);
    int32_t (*scratch)(const compare_attributes *attributes); /* bytes */
    void (*print)(const compare_attributes *attributes);
    void (*cases)(const struct compare_row *row);
} compare_row;

extern const compare_row compare_rows[];
extern const int32_t compare_row_count;
extern const int32_t compare_only_alignment; /* 0: all */

/* The layout of an array: extents and strides of four axes, the last one innermost. */
typedef struct compare_layout {
    int32_t extent[4], stride[4];
} compare_layout;

compare_layout compare_dense(int32_t count);
compare_layout compare_matrix(int32_t rows, int32_t columns, int32_t ld);

/* alpha and beta of kernels that add to their output. */
enum { COMPARE_SCALES = 5 };
extern const float compare_scales[COMPARE_SCALES][2];

typedef enum compare_values {
    COMPARE_UNIFORM, /* from -1 to 1 */
    COMPARE_SMALL,   /* 2^-13: products that are lost where they are added to an output one by one, */
    COMPARE_ONES,    /* which is 1 in these cases */
    COMPARE_EIGHTHS, /* multiples of 1/8: sums of their products are exact in any order */
    COMPARE_NANS     /* the same with some NaN */
} compare_values;

/* Whether the row's conditions hold at some alignment; a case is skipped, and counted, at the others. */
bool compare_matches(const compare_row *row, compare_attributes *attributes);

/* Input arrays, filled anew for each case: slots 0 to 2. */
float *compare_input(int32_t slot, compare_layout layout, compare_values values);
int32_t *compare_indices(int32_t count, int32_t rows);
uint8_t *compare_input_index(void);

/* The same for 8-bit integers, of which many are extremes: from -128 to 127, or if `small` -1, 0 and 1; the
 * floats of those in slot `of`, less zero; and a copy of other words. */
int8_t *compare_input_s8(int32_t slot, compare_layout layout, bool small);
const float *compare_input_of_s8(int32_t slot, int32_t of, compare_layout layout, int32_t zero);
const int32_t *compare_input_words(int32_t slot, const int32_t *words, int32_t count);
uint32_t compare_random(uint32_t key, uint32_t number);

/* The output array, twice: the kernel's (actual) and ref's (expected), with the same old values, or NaN where
 * beta is 0. A third one holds the magnitudes of the sums' terms. Pointers of compare_input and
 * compare_actual serve `ref`, until the first alignment. */
void compare_output(compare_layout layout, float beta);
float *compare_actual(void);
float *compare_expected(void);
float *compare_magnitudes(void);
int8_t *compare_output_s8(compare_layout layout); /* returns the expected one */
int8_t *compare_output_in_place_s8(int32_t slot); /* the old values are those of an input */
uint8_t *compare_actual_index(void);
uint8_t *compare_expected_index(void);

/* An epilogue of a result with this layout and so many channels, where the case has one: each combination of
 * operands and limits in turn. Its residual is slot 2. */
void compare_draw_epilogue(const compare_attributes *attributes, int32_t channels, compare_layout result);

/* The epilogue with the residual's current address, NULL where the case has none. */
const ag_epilogue *compare_epilogue(void);

/* Replaces the inputs by their magnitudes: ref with alpha 1 and beta 0 then gives the scale of the rounding
 * bound. So does an epilogue, which has no limits then. */
void compare_make_magnitudes(void);

/* Stores inputs and output with their first values at the next alignment at which the case is not skipped;
 * false after the last. The kernel's inputs are compare_operand of each slot. */
bool compare_next_alignment(compare_attributes *attributes);
const float *compare_operand(int32_t slot);
const int8_t *compare_operand_s8(int32_t slot);
const int32_t *compare_operand_words(int32_t slot);
int8_t *compare_actual_s8(void);

/* As many bytes as the row's formula says, aligned to 4, between guards; NULL where they are none. A kernel
 * under test calls compare_scratch_needed by AG_SCRATCH_NEEDED. */
void *compare_scratch(const compare_attributes *attributes);
void compare_scratch_needed(int32_t bytes);

/* Compares both outputs, guards included: bit for bit except for the rounding of sums of `terms` products,
 * scaled by alpha and added to beta times the old value. The kernel must not have changed its operands. */
void compare_check(const compare_attributes *attributes, int32_t terms);

/* The same where no rounding is allowed; index arrays as well. */
void compare_check_exact(const compare_attributes *attributes);
void compare_check_s8(const compare_attributes *attributes);

/* Prints of a wrong case. */
void compare_print_int32_t(const char *name, int32_t value);
void compare_print_float(const char *name, float value);

/* For conditions: division as in Python, rounded down, and its remainder. */
int32_t compare_floor_div(int32_t a, int32_t b);
int32_t compare_floor_mod(int32_t a, int32_t b);

/* Defines the cases of a kernel: `row` is one to compare. */
#define COMPARE_CASES(name)                                                                                  \
    void compare_##name(const compare_row *row);                                                             \
    void compare_##name(const compare_row *row)

/* The same where `all` calls a function of this file for each case of its table. */
#define COMPARE_CASES_OF(name, all, ...)                                                                     \
    COMPARE_CASES(name) {                                                                                    \
        all(row, __VA_ARGS__);                                                                               \
    }

#endif
