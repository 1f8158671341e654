/* The arrays of a case: in buffers between guards, at each of the alignments. */
#ifndef COMPARE_ARRAYS_H
#define COMPARE_ARRAYS_H

#include "compare.h"

#if defined __SOFTFP__
static const int32_t alignments[] = {4}; /* no FPU: nothing is loaded by more than words */
#elif COMPARE_FORBID_GUARDS
static const int32_t alignments[] = {8}; /* the unit of AddressSanitizer's shadow */
#else
static const int32_t alignments[] = {64, 16, 8, 4};
#endif
enum { ALIGNMENTS = sizeof alignments / sizeof *alignments };

/* Results: of the kernel, of ref, and of ref from the magnitudes of the inputs. */
enum { ACTUAL = 3, EXPECTED, MAGNITUDES };

/* Fills the arrays of a case. The kernel's output and ref's begin with the same values. */
void compare_prepare(const compare_row *row, const compare_attributes *f, uint32_t number);

/* Fills inputs and output again with the values of compare_prepare, at alignments[alignment]. */
void compare_restore(int32_t alignment);

/* The inputs become their magnitudes. */
void compare_take_magnitudes(void);

/* The arguments of the call that computes a result. */
compare_call compare_call_of(const compare_row *row, const compare_attributes *f, int32_t which);

/* Makes AddressSanitizer, with which a backend's kernels are compiled, report accesses to guards, or no
 * longer. */
void compare_forbid_guards(bool forbidden, const compare_call *c);

/* A result and its guards, and how many floats they are. */
const float *compare_result(int32_t which, int32_t *floats);

/* Whether all bits are equal: word by word, as memcmp of a small C library compares byte by byte. */
bool compare_bits_are_equal(const float *a, const float *b, int32_t floats);

/* Whether the indices of maxima are as in ref; whether inputs and guards of scratch memory are as before;
 * whether the guards of the output are. */
bool compare_indices_agree(void);
bool compare_operands_are_unchanged(void);
bool compare_output_has_guards(void);

/* The bytes of scratch memory that the kernel needs if they are more than its row's formula says, otherwise
 * 0. */
int32_t compare_scratch_excess(void);

#endif
