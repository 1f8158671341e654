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
#define COMPARE_HOST 32768 /* of hosts, which are fast enough for wide convolutions, too */
#ifndef COMPARE_FORBID_GUARDS
#define COMPARE_FORBID_GUARDS 0 /* 1: guards are forbidden to kernels under AddressSanitizer */
#endif

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
const float *compare_input(int32_t slot, compare_layout layout, compare_values values);
int32_t *compare_indices(int32_t count, int32_t rows);
uint8_t *compare_input_index(void);

/* The same for 8-bit integers, of which many are extremes: from -128 to 127, or if `small` -1, 0 and 1; the
 * floats of those in slot `of`, less zero; and a copy of other words. */
void compare_input_s8(int32_t slot, compare_layout layout, bool small);
void compare_input_of_s8(int32_t slot, int32_t of, compare_layout layout, int32_t zero);
void compare_input_words(int32_t slot, const int32_t *words, int32_t count);
uint32_t compare_random(uint32_t key, uint32_t number);

/* The output array, twice: the kernel's (actual) and ref's (expected), with the same old values, or NaN where
 * beta is 0, or those of input `slot`. A third one holds the magnitudes of the sums' terms. */
void compare_output(compare_layout layout, float beta);
void compare_output_s8(compare_layout layout);
void compare_output_in_place_s8(int32_t slot);

/* An epilogue of a result with this layout and so many channels, where the case has one: each combination of
 * operands and limits in turn. Its residual is slot 2. */
void compare_draw_epilogue(const compare_attributes *attributes, int32_t channels, compare_layout result);

/* A call of the kernel, or if `of_ref` of ref, with the same operands, or their magnitudes. Pointers to
 * floats and integers are the same addresses. */
typedef struct compare_call {
    bool of_ref, of_magnitudes;
    const float *in[3];
    const int8_t *in_s8[3];
    float *out;
    int8_t *out_s8;
    uint8_t *index; /* of the output */
    const ag_epilogue *epilogue;
    float alpha, beta;
    void *scratch; /* as many bytes as the row's formula says, between guards; NULL where they are none */
    int32_t terms, calls;
} compare_call;

/* The calls of a case, one in each iteration:
 *
 *     for (compare_call c = compare_sums(terms); compare_next(&c, f);) {
 *         (c.of_ref ? ref : kernel)(c.in[0], ..., c.out, ...);
 *     }
 *
 * First ref computes the expected output, then the kernel computes its own at each alignment at which the
 * case is not skipped. The two must be equal, guards included: bit for bit, or with compare_sums but for the
 * rounding of sums of `terms` products, scaled by alpha and added to beta times the old value. The scale of
 * that bound is what ref computes from the magnitudes of the inputs, in between, with alpha 1, beta 0 and an
 * epilogue without limits. The kernel must not change its operands. */
compare_call compare_exactly(void);
compare_call compare_sums(int32_t terms);
bool compare_next(compare_call *call, compare_attributes *attributes);

/* The output's first values, for other uses before the calls. */
float *compare_actual(void);

/* A kernel under test calls it by AG_SCRATCH_NEEDED. */
void compare_scratch_needed(int32_t bytes);

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
