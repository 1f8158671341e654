/* Matrix times vector with VLDM, eight rows at a time: their sums (gemv), or y plus multiples of them, twelve
 * columns at a time (gemv_t). */
#include "ag_kernels.h"
#include "axpy_rows_assembly.h"
#include "epilogue.h"
#include "tiles/helpers.h"

#include <stddef.h>

enum { ROWS = 8 };

#ifdef __OPTIMIZE_SIZE__
enum { IS_SMALL = 1 };
#else
enum { IS_SMALL = 0 };
#endif

static inline float scale_add(float sum, float alpha, float beta, const float *y) {
    return beta == 0.0f ? alpha * sum : alpha * sum + beta * *y;
}

/* What the sums begin with: y that they are added to, or a bias or a residual, which **e, a copy, then no
 * longer has; NULL for zeros. */
static AG_NOINLINE const float *start_of(const ag_epilogue **e, ag_epilogue *copy, const float *y,
                                         float alpha, float beta) {
    if (alpha != 1.0f || beta != 0.0f || (*e)->scale != NULL) {
        return alpha == 1.0f && beta == 1.0f ? y : NULL;
    }
    *copy = **e;
    *e = copy;
    const float **first = copy->bias != NULL ? &copy->bias : &copy->residual, *start = *first;
    *first = NULL;
    return start;
}

/* A vector is short: not the blocks of epilogue.c. */
static AG_NOINLINE void finish(const ag_epilogue *e, float *y, int32_t n) {
    if (e != NULL && (e->scale != NULL || e->bias != NULL || e->residual != NULL || e->low < e->high)) {
        ag_finish_columns_armv7em(e, y, n, 1, n, 0);
    }
}

static AG_NOINLINE float dot(const float *row, const float *x, int32_t n) {
    float sum = 0.0f;
    for (int32_t j = 0; j < n; j++) {
        sum += row[j] * x[j];
    }
    return sum;
}

/* clang-format off */
#define FMA(sum, a, b) "vfma.f32 s" #sum ", s" #a ", s" #b "\n"
/* eight columns of two rows, in s16..s23 and s24..s31, times x in s8..s15 */
#define TWO_ROWS(r, q, u, v)                                                                          \
    "vldmia " r "!, {s16-s23}\n vldmia " q "!, {s24-s31}\n"                                               \
    FMA(u, 8, 16) FMA(v, 8, 24) FMA(u, 9, 17) FMA(v, 9, 25) FMA(u, 10, 18) FMA(v, 10, 26)                 \
    FMA(u, 11, 19) FMA(v, 11, 27) FMA(u, 12, 20) FMA(v, 12, 28) FMA(u, 13, 21) FMA(v, 13, 29)             \
    FMA(u, 14, 22) FMA(v, 14, 30) FMA(u, 15, 23) FMA(v, 15, 31)
/* four columns */
#define FOUR_OF(r, q, u, v)                                                                               \
    "vldmia " r "!, {s16-s19}\n vldmia " q "!, {s24-s27}\n"                                               \
    FMA(u, 8, 16) FMA(v, 8, 24) FMA(u, 9, 17) FMA(v, 9, 25) FMA(u, 10, 18) FMA(v, 10, 26)                 \
    FMA(u, 11, 19) FMA(v, 11, 27)
#define NEXT(r, a) "vldmia " r "!, {s" #a "}\n"
#define SCALED(sum) "vmul.f32 s" #sum ", s" #sum ", s8\n"

/* What is read once for each tile of rows. */
typedef struct {
    const float *x;
    float *y;
    int32_t tiles, n;
    float alpha;
    const float *start; /* of the sums of a tile, `next` bytes before those of the next tile */
    int32_t next;
} of_tiles;

/* y = alpha * A x for tiles of eight rows, `step` bytes apart; s0..s7 are the sums, r4..r11 point to the rows. */
static void eight_rows(const float *a, int32_t step, of_tiles *t) {
    register const float *r0 __asm__("r0") = a;
    register int32_t r1 __asm__("r1") = step;
    register of_tiles *ip __asm__("ip") = t;
    __asm__ volatile(
        "push {r4-r11}\n"
        "0: mov r4, r0\n add r5, r4, r1\n add r6, r5, r1\n add r7, r6, r1\n add r8, r7, r1\n"
        "add r9, r8, r1\n add r10, r9, r1\n add r11, r10, r1\n add r0, r11, r1\n"
        "ldrd r3, lr, [ip, #20]\n"
        "vldm r3, {s0-s7}\n"
        "add r3, lr\n"
        "str r3, [ip, #20]\n"
        "ldr r3, [ip]\n"
        "ldr lr, [ip, #12]\n"
        "subs lr, #8\n"
        "blt 2f\n"
        "1: vldmia r3!, {s8-s15}\n"
        "subs lr, #8\n"
        TWO_ROWS("r4", "r5", 0, 1) TWO_ROWS("r6", "r7", 2, 3) TWO_ROWS("r8", "r9", 4, 5) TWO_ROWS("r10", "r11", 6, 7)
        "bge 1b\n"
        "2: adds lr, #4\n"
        "blt 6f\n"
        "vldmia r3!, {s8-s11}\n"
        "subs lr, #4\n"
        FOUR_OF("r4", "r5", 0, 1) FOUR_OF("r6", "r7", 2, 3) FOUR_OF("r8", "r9", 4, 5) FOUR_OF("r10", "r11", 6, 7)
        "6: adds lr, #4\n"
        "beq 4f\n"
        "3: vldmia r3!, {s8}\n"
        NEXT("r4", 16) NEXT("r5", 17) NEXT("r6", 18) NEXT("r7", 19)
        NEXT("r8", 20) NEXT("r9", 21) NEXT("r10", 22) NEXT("r11", 23)
        "subs lr, #1\n"
        FMA(0, 8, 16) FMA(1, 8, 17) FMA(2, 8, 18) FMA(3, 8, 19)
        FMA(4, 8, 20) FMA(5, 8, 21) FMA(6, 8, 22) FMA(7, 8, 23)
        "bne 3b\n"
        "4: ldr lr, [ip, #16]\n"
        "cmp lr, #0x3f800000\n" /* 1.0f */
        "beq 5f\n"
        "vmov s8, lr\n"
        SCALED(0) SCALED(1) SCALED(2) SCALED(3) SCALED(4) SCALED(5) SCALED(6) SCALED(7)
        "5: ldrd r3, lr, [ip, #4]\n"
        "vstmia r3!, {s0-s7}\n"
        "subs lr, #1\n"
        "strd r3, lr, [ip, #4]\n"
        "bne 0b\n"
        "pop {r4-r11}\n"
        : "+r"(r0)
        : "r"(r1), "r"(ip)
        : "r3", "lr", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29",
          "s30", "s31", "cc", "memory");
}
/* clang-format on */

/* sums = A x, of four rows; s0..s3 are the sums. */
static void four_rows(const float *a, int32_t lda, const float *x, float *sums, int32_t n) {
    const float *r0 = a, *r1 = r0 + lda, *r2 = r1 + lda, *r3 = r2 + lda;
    /* clang-format off */
    __asm__ volatile(
        "vmov s0, %[zero]\n vmov s1, %[zero]\n vmov s2, %[zero]\n vmov s3, %[zero]\n"
        "subs %[n], #8\n"
        "blt 2f\n"
        "1: vldmia %[x]!, {s8-s15}\n"
        "subs %[n], #8\n"
        TWO_ROWS("%[r0]", "%[r1]", 0, 1) TWO_ROWS("%[r2]", "%[r3]", 2, 3)
        "bge 1b\n"
        "2: adds %[n], #8\n"
        "beq 4f\n"
        "3: vldmia %[x]!, {s8}\n"
        NEXT("%[r0]", 16) NEXT("%[r1]", 17) NEXT("%[r2]", 18) NEXT("%[r3]", 19)
        "subs %[n], #1\n"
        FMA(0, 8, 16) FMA(1, 8, 17) FMA(2, 8, 18) FMA(3, 8, 19)
        "bne 3b\n"
        "4: vstm %[sums], {s0-s3}\n"
        : [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [x] "+r"(x), [n] "+r"(n)
        : [sums] "r"(sums), [zero] "r"(0)
        : "s0", "s1", "s2", "s3", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19",
          "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory");
    /* clang-format on */
}

void ag_gemv_f32_armv7em(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                         float alpha, float beta, const ag_epilogue *epilogue) {
    static const float zeros[ROWS] = {0.0f};
    const float *start = NULL;
    ag_epilogue rest;
    int32_t i = 0;
    if (epilogue != NULL || beta != 0.0f) {
        start = start_of(&epilogue, &rest, y, alpha, beta);
    }
    if (!IS_SMALL && m >= ROWS && (beta == 0.0f || start != NULL)) {
        const int32_t next = start == NULL ? 0 : ROWS * (int32_t)sizeof(float);
        of_tiles t = {x, y, m / ROWS, n, alpha, start == NULL ? zeros : start, next};
        eight_rows(a, lda * (int32_t)sizeof(float), &t);
        i = m & ~(ROWS - 1);
    }
    while (i < m) {
        const int32_t rows = i + 4 <= m ? 4 : 1;
        float sums[4];
        if (rows == 4) {
            four_rows(a + (ptrdiff_t)i * lda, lda, x, sums, n);
        } else {
            sums[0] = dot(a + (ptrdiff_t)i * lda, x, n);
        }
        for (int32_t k = 0; k < rows; k++, i++) {
            y[i] = start != NULL ? start[i] + sums[k] : scale_add(sums[k], alpha, beta, &y[i]);
        }
    }
    finish(epilogue, y, m);
}

/* clang-format off */
/* columns of y, from s8 on, += those of row r times the element of x in s##x */
#define TIMES(x, y, a) FMA(y, a, x)
#define ROW_OF_1(r, x) "vldmia " r "!, {s20}\n" TIMES(x, 8, 20)
#define ROW_OF_8(r, x)                                                                                    \
    "vldmia " r "!, {s20-s27}\n" TIMES(x, 8, 20) TIMES(x, 9, 21) TIMES(x, 10, 22) TIMES(x, 11, 23)        \
    TIMES(x, 12, 24) TIMES(x, 13, 25) TIMES(x, 14, 26) TIMES(x, 15, 27)
#define ROW_OF_12(r, x)                                                                                   \
    "vldmia " r "!, {s20-s31}\n" TIMES(x, 8, 20) TIMES(x, 9, 21) TIMES(x, 10, 22) TIMES(x, 11, 23)        \
    TIMES(x, 12, 24) TIMES(x, 13, 25) TIMES(x, 14, 26) TIMES(x, 15, 27) TIMES(x, 16, 28)                  \
    TIMES(x, 17, 29) TIMES(x, 18, 30) TIMES(x, 19, 31)
#define ROWS_OF(row)                                                                                      \
    row("r4", 0) row("r5", 1) row("r6", 2) row("r7", 3) row("r8", 4) row("r9", 5) row("r10", 6) row("r11", 7)

/* What is read once for each tile of rows; others: columns that remain. */
typedef struct {
    const float *x;
    float *y;
    int32_t tiles;
    float alpha;
    int32_t twelves, others;
} of_columns;

/* y += alpha * A' x for tiles of eight rows of A, `step` bytes apart: s0..s7 are x, r4..r11 point to the rows. */
static void add_eight_rows(const float *a, int32_t step, of_columns *t) {
    register const float *r0 __asm__("r0") = a;
    register int32_t r1 __asm__("r1") = step;
    register of_columns *ip __asm__("ip") = t;
    __asm__ volatile(
        "push {r4-r11}\n"
        "0: mov r4, r0\n add r5, r4, r1\n add r6, r5, r1\n add r7, r6, r1\n add r8, r7, r1\n"
        "add r9, r8, r1\n add r10, r9, r1\n add r11, r10, r1\n add r0, r11, r1\n"
        "ldr r3, [ip]\n"
        "ldr lr, [ip, #12]\n"
        "vldmia r3!, {s0-s7}\n"
        "str r3, [ip]\n"
        "cmp lr, #0x3f800000\n" /* 1.0f */
        "beq 1f\n"
        "vmov s8, lr\n"
        SCALED(0) SCALED(1) SCALED(2) SCALED(3) SCALED(4) SCALED(5) SCALED(6) SCALED(7)
        "1: ldr r3, [ip, #4]\n"
        "ldr lr, [ip, #16]\n"
        "subs lr, #1\n"
        "blt 3f\n"
        "2: vldm r3, {s8-s19}\n"
        "subs lr, #1\n"
        ROWS_OF(ROW_OF_12)
        "vstmia r3!, {s8-s19}\n"
        "bge 2b\n"
        "3: ldr lr, [ip, #20]\n"
        "subs lr, #8\n"
        "blt 5f\n"
        "4: vldm r3, {s8-s15}\n"
        "subs lr, #8\n"
        ROWS_OF(ROW_OF_8)
        "vstmia r3!, {s8-s15}\n"
        "bge 4b\n"
        "5: adds lr, #8\n"
        "beq 7f\n"
        "6: vldm r3, {s8}\n"
        "subs lr, #1\n"
        ROWS_OF(ROW_OF_1)
        "vstmia r3!, {s8}\n"
        "bne 6b\n"
        "7: ldr lr, [ip, #8]\n"
        "subs lr, #1\n"
        "str lr, [ip, #8]\n"
        "bne 0b\n"
        "pop {r4-r11}\n"
        : "+r"(r0)
        : "r"(r1), "r"(ip)
        : "r3", "lr", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
          "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29",
          "s30", "s31", "cc", "memory");
}
/* clang-format on */

void ag_gemv_t_f32_armv7em(const float *a, int32_t lda, const float *x, float *y, int32_t m, int32_t n,
                           float alpha, float beta, const ag_epilogue *epilogue) {
    const float *start = NULL;
    ag_epilogue rest;
    if (epilogue != NULL) {
        start = start_of(&epilogue, &rest, y, alpha, beta);
    }
    if (start != NULL && beta == 0.0f) {
        ag_axpby_f32_armv7em(start, y, n, 1.0f, 0.0f);
    } else if (beta == 0.0f) {
        ag_zero_floats(y, n);
    } else if (beta != 1.0f) {
        ag_axpby_f32_armv7em(y, y, n, beta, 0.0f);
    }
    if (m >= ROWS) {
        /* twelve columns at a time, unless four to seven would remain; then eight and one */
        const int32_t twelves = n / 12 - (n >= 12 && n % 12 >= 4 && n % 12 < 8);
        of_columns t = {x, y, m / ROWS, alpha, twelves, n - 12 * twelves};
        add_eight_rows(a, lda * (int32_t)sizeof(float), &t);
    }
    for (int32_t i = m & ~(ROWS - 1); i < m; i++) {
        ag_axpby_f32_armv7em(a + (ptrdiff_t)i * lda, y, n, alpha * x[i], 1.0f);
    }
    finish(epilogue, y, n);
}
