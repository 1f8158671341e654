/* The epilogue of a stored matrix, in blocks of four columns whose biases stay in s4 .. s7. A row is loaded
 * by VLDM; limits from 0 on are applied to the bits of the floats, which are ordered as integers where they
 * are not negative: BIC clears negative numbers, and QADD and SUB of `offset`, the distance from the bits of
 * `high` to the largest integer, limit the others. The loop stops at a row that may have a NaN, for which
 * this does not hold; inf - inf counts as one. */
#include "tiles/epilogue.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 4 };

/* clang-format off */
#define EACH_OF_4(operation, a0, a1, a2, a3) operation(a0) operation(a1) operation(a2) operation(a3)
#define ADD_BIAS "vadd.f32 s0, s0, s4\n vadd.f32 s1, s1, s5\n vadd.f32 s2, s2, s6\n vadd.f32 s3, s3, s7\n"
#define ADD_RESIDUAL                                                                                      \
    "vldm %[r], {s8-s11}\n add %[r], %[step]\n"                                                           \
    "vadd.f32 s0, s0, s8\n vadd.f32 s1, s1, s9\n vadd.f32 s2, s2, s10\n vadd.f32 s3, s3, s11\n"
#define STOP_AT_NAN                                                                                       \
    "vadd.f32 s12, s0, s1\n vadd.f32 s13, s2, s3\n vcmp.f32 s12, s13\n vmrs APSR_nzcv, fpscr\n bvs 2f\n"
#define LOWER(r) "bic " #r ", " #r ", " #r ", asr #31\n"
#define UPPER(r) "qadd " #r ", " #r ", %[offset]\n sub " #r ", %[offset]\n"
#define TO_CORE STOP_AT_NAN "vmov r4, r5, s0, s1\n vmov r6, r8, s2, s3\n" EACH_OF_4(LOWER, r4, r5, r6, r8)
#define FROM_CORE "stm %[y], {r4, r5, r6, r8}\n"
#define PUT "vstm %[y], {s0-s3}\n"
#define CAP TO_CORE EACH_OF_4(UPPER, r4, r5, r6, r8) FROM_CORE
#define CUT TO_CORE FROM_CORE
#define ROWS(residual, put)                                                                               \
    __asm__ volatile("vldm %[bias], {s4-s7}\n"                                                            \
                     "1: vldm %[y], {s0-s3}\n" ADD_BIAS residual put                                      \
                     "subs %[m], #1\n add %[y], %[step]\n bne 1b\n"                                       \
                     "2:\n"                                                                               \
                     : [y] "+r"(y), [r] "+r"(r), [m] "+r"(m)                                              \
                     : [bias] "r"(bias), [step] "r"(step), [offset] "r"(offset)                           \
                     : "r4", "r5", "r6", "r8", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8",      \
                       "s9", "s10", "s11", "s12", "s13", "cc", "memory")
/* clang-format on */

typedef enum { NO_LIMITS, FROM_0, FROM_0_TO_HIGH } limits;

/* Four columns of as many rows as possible, at least until a row that may have a NaN; returns the rows that
 * remain. Steps in bytes. */
static int32_t four_columns(const float *bias, float *y, const float *r, int32_t step, int32_t m, limits kind,
                            int32_t offset) {
    if (r != NULL) {
        switch (kind) {
        case NO_LIMITS:
            ROWS(ADD_RESIDUAL, PUT);
            break;
        case FROM_0:
            ROWS(ADD_RESIDUAL, CUT);
            break;
        default:
            ROWS(ADD_RESIDUAL, CAP);
        }
    } else {
        switch (kind) {
        case NO_LIMITS:
            ROWS("", PUT);
            break;
        case FROM_0:
            ROWS("", CUT);
            break;
        default:
            ROWS("", CAP);
        }
    }
    return m;
}

/* Rows and columns of y from y[i, j] on. */
static void by_element(const ag_epilogue *e, float *y, int32_t ldy, int32_t i, int32_t j, int32_t m,
                       int32_t n) {
    const ptrdiff_t at = (ptrdiff_t)i * ldy + j;
    ag_epilogue part = *e;
    part.scale += part.scale == NULL ? 0 : j;
    part.bias += part.bias == NULL ? 0 : j;
    part.residual += part.residual == NULL ? 0 : at;
    ag_finish(&part, y + at, ldy, m, n);
}

void ag_finish_armv7em(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n) {
    static const float zeros[COLUMNS] = {0.0f};
    const bool none = e->low == -INFINITY && e->high == INFINITY;
    const limits kind = none ? NO_LIMITS : e->high == INFINITY ? FROM_0 : FROM_0_TO_HIGH;
    const int32_t whole =
        e->scale == NULL && (none || (e->low == 0.0f && e->high > 0.0f)) ? n & ~(COLUMNS - 1) : 0;
    int32_t offset;
    memcpy(&offset, &e->high, sizeof offset);
    offset = INT32_MAX - offset;
    for (int32_t j = 0; j < whole; j += COLUMNS) {
        const float *bias = e->bias == NULL ? zeros : e->bias + j;
        for (int32_t i = 0; i < m; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * ldy + j;
            const float *r = e->residual == NULL ? NULL : e->residual + at;
            i = m - four_columns(bias, y + at, r, ldy * (int32_t)sizeof(float), m - i, kind, offset);
            if (i < m) {
                by_element(e, y, ldy, i, j, 1, COLUMNS);
            }
        }
    }
    if (whole < n) {
        by_element(e, y, ldy, 0, whole, m, n - whole);
    }
}
