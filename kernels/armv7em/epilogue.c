/* The epilogue of a stored matrix, in blocks of four columns whose biases stay in s4 .. s7, scales in s8 ..
 * s11. Limits from 0 on are applied to the bits of the floats, which are ordered as integers where they are
 * not negative: BIC clears negative numbers, and QADD and SUB of `offset`, the distance from the bits of
 * `high` to the largest integer, limit the others. The loop stops at a row that may have a NaN, for which
 * this does not hold; inf - inf counts as one. Scales and residuals are applied before, in another pass. */
#include "tiles/epilogue.h"
#include "tiles/helpers.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 4 };

/* clang-format off */
#define EACH_OF_4(operation, a0, a1, a2, a3) operation(a0) operation(a1) operation(a2) operation(a3)
#define SCALE                                                                                             \
    "cbz %[scaled], 4f\n"                                                                                 \
    "vmul.f32 s0, s0, s8\n vmul.f32 s1, s1, s9\n vmul.f32 s2, s2, s10\n vmul.f32 s3, s3, s11\n 4:\n"
#define ADD_BIAS "vadd.f32 s0, s0, s4\n vadd.f32 s1, s1, s5\n vadd.f32 s2, s2, s6\n vadd.f32 s3, s3, s7\n"
#define ADD_RESIDUAL                                                                                      \
    "cbz %[r], 3f\n vldm %[r], {s12-s15}\n add %[r], %[step]\n"                                          \
    "vadd.f32 s0, s0, s12\n vadd.f32 s1, s1, s13\n vadd.f32 s2, s2, s14\n vadd.f32 s3, s3, s15\n 3:\n"
#define STOP_AT_NAN                                                                                       \
    "vadd.f32 s12, s0, s1\n vadd.f32 s13, s2, s3\n vcmp.f32 s12, s13\n vmrs APSR_nzcv, fpscr\n bvs 2f\n"
#define LOWER(r) "bic " #r ", " #r ", " #r ", asr #31\n"
#define UPPER(r) "qadd " #r ", " #r ", %[offset]\n sub " #r ", %[offset]\n"
#define TO_CORE STOP_AT_NAN "vmov r4, r5, s0, s1\n vmov r6, r8, s2, s3\n" EACH_OF_4(LOWER, r4, r5, r6, r8)
#define FROM_CORE "stm %[y], {r4, r5, r6, r8}\n"
#define PUT "vstm %[y], {s0-s3}\n"
#define NEXT_ROW "subs %[m], #1\n add %[y], %[step]\n bne 1b\n"
#define USED "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15"
/* m rows, or those before a row at which it stops; m is then what remains. */
#define LIMIT_ROWS(operation)                                                                             \
    __asm__ volatile("vldm %[bias], {s4-s7}\n 1: vldm %[y], {s0-s3}\n" ADD_BIAS operation NEXT_ROW "2:\n" \
                     : [y] "+r"(y), [m] "+r"(m)                                                           \
                     : [bias] "r"(bias), [step] "r"(step), [offset] "r"(offset)                           \
                     : "r4", "r5", "r6", "r8", USED, "cc", "memory")
/* clang-format on */

typedef enum { NO_LIMITS, FROM_0, FROM_0_TO_HIGH } limits;

/* Columns j ... n - 1, element by element. */
static AG_NOINLINE void ag_finish_columns(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n,
                                          int32_t j) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t k = j; k < n; k++) {
            const ptrdiff_t at = (ptrdiff_t)i * ldy + k;
            y[at] = ag_finished(e, y[at], k, at);
        }
    }
}

/* Columns j to j + 3. */
static inline void four_columns(const ag_epilogue *e, float *y, int32_t ldy, int32_t rows, int32_t j,
                                limits kind, int32_t offset) {
    static const float zeros[COLUMNS] = {0.0f};
    const int32_t step = ldy * (int32_t)sizeof(float);
    const float *bias = e->bias == NULL ? zeros : e->bias + j;
    const float *scale = e->scale == NULL ? zeros : e->scale + j;
    const float *r = e->residual == NULL ? NULL : e->residual + j;
    ag_epilogue rest = {NULL, e->bias, NULL, e->low, e->high};
    int32_t m = rows;
    y += j;
    if (e->scale != NULL || r != NULL) {
        /* clang-format off */
        __asm__ volatile("vldm %[bias], {s4-s7}\n vldm %[scale], {s8-s11}\n"
                         "1: vldm %[y], {s0-s3}\n" SCALE ADD_BIAS ADD_RESIDUAL PUT NEXT_ROW
                         : [y] "+r"(y), [r] "+l"(r), [m] "+r"(m)
                         : [bias] "r"(bias), [scale] "r"(scale), [scaled] "l"(e->scale), [step] "r"(step)
                         : USED, "cc", "memory");
        /* clang-format on */
        bias = zeros;
        rest.bias = NULL;
        y -= (ptrdiff_t)rows * ldy;
        m = kind == NO_LIMITS ? 0 : rows;
    }
    while (m > 0) {
        if (kind == NO_LIMITS) {
            LIMIT_ROWS(PUT);
        } else if (kind == FROM_0) {
            LIMIT_ROWS(TO_CORE FROM_CORE);
        } else {
            LIMIT_ROWS(TO_CORE EACH_OF_4(UPPER, r4, r5, r6, r8) FROM_CORE);
        }
        if (m > 0) { /* a row with a NaN */
            ag_finish_columns(&rest, y - j, ldy, 1, j + COLUMNS, j);
            y += ldy;
            m--;
        }
    }
}

void ag_finish_armv7em(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n) {
    const bool limited = e->low < e->high;
    const limits kind = !limited ? NO_LIMITS : e->high == INFINITY ? FROM_0 : FROM_0_TO_HIGH;
    int32_t j = 0, offset;
    memcpy(&offset, &e->high, sizeof offset);
    offset = INT32_MAX - offset;
    if (!limited || e->low == 0.0f) {
        for (; j + COLUMNS <= n; j += COLUMNS) {
            four_columns(e, y, ldy, m, j, kind, offset);
        }
    }
    if (j < n) {
        ag_finish_columns(e, y, ldy, m, n, j);
    }
}
