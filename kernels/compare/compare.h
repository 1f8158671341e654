/* Compares the kernels of a backend with `ref` on the core that the program runs on. `autodiff-gen
 * test-kernels` generates the table of kernel rows for one backend: the arrays and the call of a row follow
 * from the contract. The cases of a kernel say how large its arrays are.
 *
 * Every array is in a separate buffer at an address that is a multiple of the tested alignment and of no
 * more. Guards before and after it have values so large that one of them in a sum is noticed; no kernel may
 * change them. */
#ifndef COMPARE_H
#define COMPARE_H

#include "ag_kernels.h"

#include <stdbool.h>

#ifndef COMPARE_FLOATS
#define COMPARE_FLOATS 1280 /* of an array, so that it fits into the RAM of the smallest board */
#endif
#define COMPARE_LARGE 8192 /* of those that have room for the large cases */
#define COMPARE_HOST 32768 /* of hosts, which are fast enough for wide convolutions, too */
#ifndef COMPARE_FORBID_GUARDS
#define COMPARE_FORBID_GUARDS 0 /* 1: guards are forbidden to kernels under AddressSanitizer */
#endif
#define COMPARE_COUNT(table) (sizeof(table) / sizeof *(table))

typedef enum compare_values {
    COMPARE_UNIFORM, /* from -1 to 1 */
    COMPARE_SMALL,   /* 2^-13: products are lost if they are added to the output, 1, one by one */
    COMPARE_ONES,    /* the output's first values where inputs are COMPARE_SMALL */
    COMPARE_EIGHTHS, /* multiples of 1/8: sums of their products are exact in any order */
    COMPARE_NANS     /* the same with some NaN in the first input */
} compare_values;

/* The layout of an array: extents and strides of four axes, the last one innermost. */
typedef struct compare_layout {
    int32_t extent[4], stride[4];
} compare_layout;

typedef struct compare_call compare_call;

typedef struct compare_attributes {
    /* of the call, which conditions in kernels.toml compare */
    int32_t m, n, k, lda, ldb, ldc, outer, rows, count, inner, reverse, epilogue, align;
    int32_t x_zero, y_zero, low, high, per_channel, multiplier, shift, least;
    float alpha, beta;
    ag_conv2d_shape conv2d_shape;
    ag_conv2d_pool_shape conv2d_pool_shape;
    ag_pool2d_shape pool2d_shape;

    /* Of the case. The layout of an array of this name; NULL: it is in `sizes`, such as "a=mkA b=knB c=mnC".
     * The last small letter is the number of columns, the product of those before it the number of rows, and
     * a capital letter the leading dimension. */
    compare_layout (*layout)(const struct compare_attributes *f, const char *name);
    const char *sizes;
    int32_t terms;         /* of each sum, whose rounding may differ; 0: results are equal */
    int32_t channels;      /* that have an epilogue, or a bias and a scale */
    compare_values values; /* of floats */
    char small;            /* the array of integers, by its first letter, that are -1, 0 and 1 */
    bool in_place;         /* the result has the memory of the first input */
    bool without_scratch;  /* the kernel gets none, though its row has a formula */
    /* index: computes valid indices of maxima from other arrays. reference: calls ref where the call differs
     * from the row's. NULL: none. */
    void (*index)(const struct compare_attributes *f);
    void (*reference)(const struct compare_attributes *f, const compare_call *c);
} compare_attributes;

/* A call of the kernel, or if `of_ref` of ref, with the same operands, or their magnitudes. */
struct compare_call {
    bool of_ref;
    const float *in[3]; /* or integers */
    float *out;
    const uint8_t *selected;
    uint8_t *index;
    const int32_t *indices, *bias, *multiplier;
    const int8_t *shift;
    const ag_epilogue *epilogue;
    float alpha, beta;
    void *scratch; /* as many bytes as the row's formula says, between guards; NULL where they are none, or
                      without_scratch */
};

/* Arrays that are read: f floats, b 8-bit integers, w biases and scales, u indices of maxima, n indices; that
 * are written: F, B, U. */
typedef struct compare_array {
    char type;
    const char *name;
} compare_array;

typedef struct compare_row {
    const compare_array *arrays;
    bool (*when)(const compare_attributes *f);
    int32_t (*scratch)(const compare_attributes *f); /* bytes */
    bool scratch_optional;                           /* cases without it are tested, too */
    void (*print)(const compare_attributes *f);
    void (*call)(const compare_attributes *f, const compare_call *c);
    void (*cases)(const struct compare_row *row);
} compare_row;

extern const compare_row compare_rows[];
extern const int32_t compare_row_count;
extern const int32_t compare_only_alignment; /* 0: all */

/* Defines the cases of a kernel: each is a call of compare_case. */
#define COMPARE_CASES(name, ...)                                                                             \
    void compare_##name(const compare_row *row);                                                             \
    void compare_##name(const compare_row *row) {                                                            \
        __VA_ARGS__;                                                                                         \
    }

/* Ref computes the expected output, then the kernel computes its own at each alignment at which the row's
 * conditions hold; a case is counted as skipped at the others. The two must be equal, guards included: bit
 * for bit, or but for the rounding of sums of `terms` products, scaled by alpha and added to beta times the
 * old value. The scale of that bound is what ref computes from the magnitudes of the inputs once bits differ,
 * with alpha 1, beta 0 and an epilogue without limits. The kernel must not change its operands. Old values
 * are NaN where beta is 0; each case with an epilogue has the next combination of operands and limits. */
void compare_case(const compare_row *row, compare_attributes *f);

/* The array that the kernel writes first. */
const compare_array *compare_output_array(const compare_row *row);

/* alpha and beta of kernels that add to their output. */
enum { COMPARE_SCALES = 5 };
extern const float compare_scales[COMPARE_SCALES][2];

compare_layout compare_matrix(int32_t rows, int32_t columns, int32_t ld);

/* A number or a leading dimension by its letter in `sizes`; o, r, c and i are outer, rows, count and inner.
 */
int32_t compare_size(const compare_attributes *f, char letter);

/* Input arrays, filled anew for each case: slots 0 to 2; memory of a result, and for indices of maxima. */
const float *compare_input(int32_t slot, compare_layout layout, compare_values values);
float *compare_output(compare_layout layout, float beta);
uint8_t *compare_input_index(void);

/* Sets zeros of x and y, and limits, to one of five encodings in turn. */
void compare_encode(compare_attributes *f, uint32_t number);

/* A kernel under test calls it by AG_SCRATCH_NEEDED. */
void compare_scratch_needed(int32_t bytes);

/* Prints of a wrong case. */
void compare_print_int32_t(const char *name, int32_t value);
void compare_print_float(const char *name, float value);

/* For conditions: division as in Python, rounded down, and its remainder. */
int32_t compare_floor_div(int32_t a, int32_t b);
int32_t compare_floor_mod(int32_t a, int32_t b);

#endif
