/* Inner loops of gemv, gemv_t and ger in AArch64: LD1 and ST1 move sixteen floats with one instruction. */
#ifndef AG_NEON_GEMV_GER_H
#define AG_NEON_GEMV_GER_H

#include <stdint.h>

enum { ROWS = 8, COLUMNS = 32 };

/* clang-format off */
#define SIXTEEN_OF_TWO(r, s, u, v)                                        \
    "ld1 {v4.4s-v7.4s}, [" #r "], #64\n ld1 {v24.4s-v27.4s}, [" #s "], #64\n" \
    "fmla v" #u ".4s, v4.4s, v0.4s\n fmla v" #v ".4s, v24.4s, v0.4s\n"    \
    "fmla v" #u ".4s, v5.4s, v1.4s\n fmla v" #v ".4s, v25.4s, v1.4s\n"    \
    "fmla v" #u ".4s, v6.4s, v2.4s\n fmla v" #v ".4s, v26.4s, v2.4s\n"    \
    "fmla v" #u ".4s, v7.4s, v3.4s\n fmla v" #v ".4s, v27.4s, v3.4s\n"
#define FOUR_OF(r, u) "ldr q4, [" #r "], #16\n fmla v" #u ".4s, v4.4s, v0.4s\n"

/* sums[i] = the first n elements of row i times x, n a multiple of four */
static inline void dot_rows(const float *const rows[ROWS], const float *x, int32_t n, float sums[ROWS]) {
    __asm__ volatile(
        "ldp x1, x2, [%[rows]]\n ldp x3, x4, [%[rows], #16]\n"
        "ldp x5, x6, [%[rows], #32]\n ldp x7, x8, [%[rows], #48]\n"
        "movi v16.4s, #0\n movi v17.4s, #0\n movi v18.4s, #0\n movi v19.4s, #0\n"
        "movi v20.4s, #0\n movi v21.4s, #0\n movi v22.4s, #0\n movi v23.4s, #0\n"
        "subs %w[n], %w[n], #16\n"
        "b.lt 2f\n"
        "1: ld1 {v0.4s-v3.4s}, [%[x]], #64\n"
        "subs %w[n], %w[n], #16\n"
        SIXTEEN_OF_TWO(x1, x2, 16, 17) SIXTEEN_OF_TWO(x3, x4, 18, 19)
        SIXTEEN_OF_TWO(x5, x6, 20, 21) SIXTEEN_OF_TWO(x7, x8, 22, 23)
        "b.ge 1b\n"
        "2: adds %w[n], %w[n], #16\n"
        "b.eq 4f\n"
        "3: ldr q0, [%[x]], #16\n"
        "subs %w[n], %w[n], #4\n"
        FOUR_OF(x1, 16) FOUR_OF(x2, 17) FOUR_OF(x3, 18) FOUR_OF(x4, 19)
        FOUR_OF(x5, 20) FOUR_OF(x6, 21) FOUR_OF(x7, 22) FOUR_OF(x8, 23)
        "b.ne 3b\n"
        "4: faddp v16.4s, v16.4s, v17.4s\n faddp v18.4s, v18.4s, v19.4s\n"
        "faddp v20.4s, v20.4s, v21.4s\n faddp v22.4s, v22.4s, v23.4s\n"
        "faddp v16.4s, v16.4s, v18.4s\n faddp v20.4s, v20.4s, v22.4s\n"
        "stp q16, q20, [%[sums]]\n"
        : [x] "+r"(x), [n] "+r"(n)
        : [rows] "r"(rows), [sums] "r"(sums)
        : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16",
          "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "cc", "memory");
}

#define ROW_OF_32(lane)                                                   \
    "ld1 {v4.4s-v7.4s}, [%[a]], #64\n ld1 {v24.4s-v27.4s}, [%[a]], %[step]\n" \
    "fmla v16.4s, v4.4s, v0.s[" #lane "]\n fmla v17.4s, v5.4s, v0.s[" #lane "]\n"     \
    "fmla v18.4s, v6.4s, v0.s[" #lane "]\n fmla v19.4s, v7.4s, v0.s[" #lane "]\n"     \
    "fmla v20.4s, v24.4s, v0.s[" #lane "]\n fmla v21.4s, v25.4s, v0.s[" #lane "]\n"   \
    "fmla v22.4s, v26.4s, v0.s[" #lane "]\n fmla v23.4s, v27.4s, v0.s[" #lane "]\n"

/* sums[j] = column j of m rows of A times x; the rows are lda apart */
static inline void dot_columns(const float *a, ptrdiff_t lda, const float *x, int32_t m, float sums[COLUMNS]) {
    __asm__ volatile(
        "movi v16.4s, #0\n movi v17.4s, #0\n movi v18.4s, #0\n movi v19.4s, #0\n"
        "movi v20.4s, #0\n movi v21.4s, #0\n movi v22.4s, #0\n movi v23.4s, #0\n"
        "subs %w[m], %w[m], #4\n"
        "b.lt 2f\n"
        "1: ldr q0, [%[x]], #16\n"
        "subs %w[m], %w[m], #4\n"
        ROW_OF_32(0) ROW_OF_32(1) ROW_OF_32(2) ROW_OF_32(3)
        "b.ge 1b\n"
        "2: adds %w[m], %w[m], #4\n"
        "b.eq 4f\n"
        "3: ldr s0, [%[x]], #4\n"
        "subs %w[m], %w[m], #1\n"
        ROW_OF_32(0)
        "b.ne 3b\n"
        "4: stp q16, q17, [%[sums]]\n stp q18, q19, [%[sums], #32]\n"
        "stp q20, q21, [%[sums], #64]\n stp q22, q23, [%[sums], #96]\n"
        : [a] "+r"(a), [x] "+r"(x), [m] "+r"(m)
        : [step] "r"(lda * 4 - 64), [sums] "r"(sums)
        : "v0", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
          "v27", "cc", "memory");
}

#define SIXTEEN_PLUS(r, lane)                                             \
    "ld1 {v4.4s-v7.4s}, [" #r "]\n"                                       \
    "fmla v4.4s, v0.4s, v16.s[" #lane "]\n fmla v5.4s, v1.4s, v16.s[" #lane "]\n" \
    "fmla v6.4s, v2.4s, v16.s[" #lane "]\n fmla v7.4s, v3.4s, v16.s[" #lane "]\n" \
    "st1 {v4.4s-v7.4s}, [" #r "], #64\n"
#define FOUR_PLUS(r, lane)                                                \
    "ldr q4, [" #r "]\n fmla v4.4s, v0.4s, v16.s[" #lane "]\n str q4, [" #r "], #16\n"

/* the first n elements of four rows += x[i] y, n a multiple of four; the rows are lda apart */
static inline void axpy_4_rows(float *a, ptrdiff_t lda, const float x[4], const float *y, int32_t n) {
    __asm__ volatile(
        "ldr q16, [%[x]]\n"
        "add x2, %[a], %[step]\n add x3, x2, %[step]\n add x4, x3, %[step]\n"
        "subs %w[n], %w[n], #16\n"
        "b.lt 2f\n"
        "1: ld1 {v0.4s-v3.4s}, [%[y]], #64\n"
        "subs %w[n], %w[n], #16\n"
        SIXTEEN_PLUS(%[a], 0) SIXTEEN_PLUS(x2, 1) SIXTEEN_PLUS(x3, 2) SIXTEEN_PLUS(x4, 3)
        "b.ge 1b\n"
        "2: adds %w[n], %w[n], #16\n"
        "b.eq 4f\n"
        "3: ldr q0, [%[y]], #16\n"
        "subs %w[n], %w[n], #4\n"
        FOUR_PLUS(%[a], 0) FOUR_PLUS(x2, 1) FOUR_PLUS(x3, 2) FOUR_PLUS(x4, 3)
        "b.ne 3b\n"
        "4:\n"
        : [a] "+r"(a), [y] "+r"(y), [n] "+r"(n)
        : [x] "r"(x), [step] "r"(lda * 4)
        : "x2", "x3", "x4", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "cc", "memory");
}
/* clang-format on */

#endif
