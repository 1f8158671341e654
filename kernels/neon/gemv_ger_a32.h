/* Inner loops of gemv, gemv_t and ger in AArch32: VLD1 and VST1 move eight floats with one instruction. */
#ifndef AG_NEON_GEMV_GER_H
#define AG_NEON_GEMV_GER_H

#include <stdint.h>

enum { ROWS = 4, COLUMNS = 32 };

/* clang-format off */
#define SIXTEEN_OF(r, u)                                                  \
    "vld1.32 {d24-d27}, [" #r "]!\n vld1.32 {d28-d31}, [" #r "]!\n"       \
    "vfma.f32 q" #u ", q12, q0\n vfma.f32 q" #u ", q13, q1\n"             \
    "vfma.f32 q" #u ", q14, q2\n vfma.f32 q" #u ", q15, q3\n"
#define FOUR_OF(r, u) "vld1.32 {d24, d25}, [" #r "]!\n vfma.f32 q" #u ", q12, q0\n"

/* sums[i] = the first n elements of row i times x, n a multiple of four */
static inline void dot_rows(const float *const rows[ROWS], const float *x, int32_t n, float sums[ROWS]) {
    const float *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
    __asm__ volatile(
        "vmov.i32 q8, #0\n vmov.i32 q9, #0\n vmov.i32 q10, #0\n vmov.i32 q11, #0\n"
        "subs %[n], %[n], #16\n"
        "blt 2f\n"
        "1: vld1.32 {d0-d3}, [%[x]]!\n vld1.32 {d4-d7}, [%[x]]!\n"
        "subs %[n], %[n], #16\n"
        SIXTEEN_OF(%[r0], 8) SIXTEEN_OF(%[r1], 9) SIXTEEN_OF(%[r2], 10) SIXTEEN_OF(%[r3], 11)
        "bge 1b\n"
        "2: adds %[n], %[n], #16\n"
        "beq 4f\n"
        "3: vld1.32 {d0, d1}, [%[x]]!\n"
        "subs %[n], %[n], #4\n"
        FOUR_OF(%[r0], 8) FOUR_OF(%[r1], 9) FOUR_OF(%[r2], 10) FOUR_OF(%[r3], 11)
        "bne 3b\n"
        "4: vadd.f32 d16, d16, d17\n vadd.f32 d18, d18, d19\n"
        "vadd.f32 d20, d20, d21\n vadd.f32 d22, d22, d23\n"
        "vpadd.f32 d16, d16, d18\n vpadd.f32 d17, d20, d22\n"
        "vst1.32 {d16, d17}, [%[sums]]\n"
        : [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [x] "+r"(x), [n] "+r"(n)
        : [sums] "r"(sums)
        : "q0", "q1", "q2", "q3", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", "memory");
}

#define EIGHT_COLUMNS(next, u, v, lane)                                   \
    "vld1.32 {d4-d7}, [%[a]]" next "\n vmla.f32 q" #u ", q2, " lane "\n vmla.f32 q" #v ", q3, " lane "\n"
#define ROW_OF_32(lane)                                                   \
    EIGHT_COLUMNS("!", 8, 9, lane) EIGHT_COLUMNS("!", 10, 11, lane)       \
    EIGHT_COLUMNS("!", 12, 13, lane) EIGHT_COLUMNS(", %[step]", 14, 15, lane)

/* sums[j] = column j of m rows of A times x; the rows are lda apart */
static inline void dot_columns(const float *a, ptrdiff_t lda, const float *x, int32_t m, float sums[COLUMNS]) {
    __asm__ volatile(
        "vmov.i32 q8, #0\n vmov.i32 q9, #0\n vmov.i32 q10, #0\n vmov.i32 q11, #0\n"
        "vmov.i32 q12, #0\n vmov.i32 q13, #0\n vmov.i32 q14, #0\n vmov.i32 q15, #0\n"
        "subs %[m], %[m], #4\n"
        "blt 2f\n"
        "1: vld1.32 {d0, d1}, [%[x]]!\n"
        "subs %[m], %[m], #4\n"
        ROW_OF_32("d0[0]") ROW_OF_32("d0[1]") ROW_OF_32("d1[0]") ROW_OF_32("d1[1]")
        "bge 1b\n"
        "2: adds %[m], %[m], #4\n"
        "beq 4f\n"
        "3: vld1.32 {d0[0]}, [%[x]]!\n"
        "subs %[m], %[m], #1\n"
        ROW_OF_32("d0[0]")
        "bne 3b\n"
        "4: vst1.32 {d16-d19}, [%[sums]]!\n vst1.32 {d20-d23}, [%[sums]]!\n"
        "vst1.32 {d24-d27}, [%[sums]]!\n vst1.32 {d28-d31}, [%[sums]]\n"
        : [a] "+r"(a), [x] "+r"(x), [m] "+r"(m), [sums] "+r"(sums)
        : [step] "r"(lda * 4 - 96)
        : "q0", "q2", "q3", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", "memory");
}

#define EIGHT_PLUS(r, lane)                                               \
    "vld1.32 {d24-d27}, [" #r "]\n"                                       \
    "vmla.f32 q12, q0, " lane "\n vmla.f32 q13, q1, " lane "\n"           \
    "vst1.32 {d24-d27}, [" #r "]!\n"
#define FOUR_PLUS(r, lane)                                                \
    "vld1.32 {d24, d25}, [" #r "]\n vmla.f32 q12, q0, " lane "\n vst1.32 {d24, d25}, [" #r "]!\n"

/* the first n elements of four rows += x[i] y, n a multiple of four; the rows are lda apart */
static inline void axpy_4_rows(float *a, ptrdiff_t lda, const float x[4], const float *y, int32_t n) {
    float *r1 = a + lda, *r2 = r1 + lda, *r3 = r2 + lda;
    __asm__ volatile(
        "vld1.32 {d4, d5}, [%[x]]\n"
        "subs %[n], %[n], #8\n"
        "blt 2f\n"
        "1: vld1.32 {d0-d3}, [%[y]]!\n"
        "subs %[n], %[n], #8\n"
        EIGHT_PLUS(%[a], "d4[0]") EIGHT_PLUS(%[r1], "d4[1]") EIGHT_PLUS(%[r2], "d5[0]") EIGHT_PLUS(%[r3], "d5[1]")
        "bge 1b\n"
        "2: adds %[n], %[n], #8\n"
        "beq 4f\n"
        "vld1.32 {d0, d1}, [%[y]]!\n"
        FOUR_PLUS(%[a], "d4[0]") FOUR_PLUS(%[r1], "d4[1]") FOUR_PLUS(%[r2], "d5[0]") FOUR_PLUS(%[r3], "d5[1]")
        "4:\n"
        : [a] "+r"(a), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [y] "+r"(y), [n] "+r"(n)
        : [x] "r"(x)
        : "q0", "q1", "q2", "q12", "q13", "cc", "memory");
}
/* clang-format on */

#endif
