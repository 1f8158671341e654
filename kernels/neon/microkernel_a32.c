/* The micro-kernels of tiles/microkernel.h in AArch32: sums in q8 to q15, row-wise (nn, tn: two registers per
 * row of the tile) or column-wise (nt, tg: one register per column). Only VMLA takes a lane as operand; it
 * rounds both the product and the sum. */
#if !defined __aarch64__
#include "tiles/microkernel.h"

/* Offsets of the fields of ag_tile. */
#define STEPS "48"
#define K "56"
#define K_RUNS "60"
#define SKIPS "64"
#define C "72"
#define SCALES "80"
typedef char ag_tile_offsets_match[offsetof(ag_tile, b) == 16 && offsetof(ag_tile, a_step) == 48 &&
                                           offsetof(ag_tile, k) == 56 && offsetof(ag_tile, a_skip) == 64 &&
                                           offsetof(ag_tile, c) == 72 && offsetof(ag_tile, alpha) == 80
                                       ? 1
                                       : -1];

/* clang-format off */
#define EACH_ROW(f) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define ZERO(n) "vmov.i32 q" #n ", #0\n"
#define ENTER "push {r4-r11, lr}\n vpush {d8-d11}\n sub sp, sp, #12\n" EACH_ROW(ZERO)
#define LEAVE "add sp, sp, #12\n vpop {d8-d11}\n pop {r4-r11, pc}\n"
/* alpha in d[n][0], beta in d[n][1]; r1: C, r2: its step */
#define SCALE(d, alpha, beta, one, times)                                 \
    "ldrd r1, r2, [r0, #" C "]\n vldr " d ", [r0, #" SCALES "]\n"         \
    "vmov.f32 " one ", #1.0\n vcmp.f32 " alpha ", " one "\n vmrs APSR_nzcv, fpscr\n beq 7f\n" EACH_ROW(times) \
    "7: vcmp.f32 " beta ", #0\n vmrs APSR_nzcv, fpscr\n beq 9f\n"

/* two registers of sums += q4 and q5 times a lane */
#define ROW(n0, n1, lane) "vmla.f32 q" #n0 ", q4, " lane "\n vmla.f32 q" #n1 ", q5, " lane "\n"
#define ROWS(l0, l1, l2, l3) ROW(8, 9, l0) ROW(10, 11, l1) ROW(12, 13, l2) ROW(14, 15, l3)
#define NEXT_B "vld1.32 {d8-d11}, [r5], r6\n"
#define TIMES_ALPHA(n) "vmul.f32 q" #n ", q" #n ", d0[0]\n"
#define ADD_ROW(n0, n1) "vld1.32 {d8-d11}, [r3], r2\n" ROW(n0, n1, "d0[1]")
#define STORE_ROWS                                                        \
    SCALE("d0", "s0", "s1", "s2", TIMES_ALPHA) "mov r3, r1\n"             \
    ADD_ROW(8, 9) ADD_ROW(10, 11) ADD_ROW(12, 13) ADD_ROW(14, 15)         \
    "9: vst1.32 {d16-d19}, [r1], r2\n vst1.32 {d20-d23}, [r1], r2\n"      \
    "vst1.32 {d24-d27}, [r1], r2\n vst1.32 {d28-d31}, [r1]\n" LEAVE

/* What differs between nn and tn: how A is found, the products of four k and of one, the skip of A by r9. r7,
 * r8: k / 4 and the remainder; r12: remaining k-runs; B is at r5, r6 bytes apart. */
#define BY_ROWS_OF_B(name, operands, four, one, skip)                     \
    __attribute__((naked)) void AG_MICROKERNEL(name)(const ag_tile *t) {  \
        (void)t;                                                          \
        __asm__(                                                          \
            ENTER operands                                                \
            "ldr r6, [r0, #52]\n ldr r12, [r0, #" K_RUNS "]\n"            \
            "1: ldr r8, [r0, #" K "]\n lsr r7, r8, #2\n and r8, r8, #3\n" \
            "cmp r7, #0\n beq 3f\n"                                       \
            "2: subs r7, r7, #1\n" four                                   \
            "bne 2b\n"                                                    \
            "3: cmp r8, #0\n beq 5f\n"                                    \
            "4: subs r8, r8, #1\n" one                                    \
            "bne 4b\n"                                                    \
            "5: subs r12, r12, #1\n"                                      \
            "beq 6f\n"                                                    \
            "ldrd r9, r10, [r0, #" SKIPS "]\n"                            \
            skip "add r5, r5, r10\n"                                      \
            "b 1b\n"                                                      \
            "6:" STORE_ROWS);                                             \
    }

#define SKIP_ROWS(by) "add r1, r1, " by "\n add r2, r2, " by "\n add r3, r3, " by "\n add r4, r4, " by "\n"
#define FOUR_OF_ROWS                                                      \
    "vld1.32 {d0, d1}, [r1]!\n vld1.32 {d2, d3}, [r2]!\n"                 \
    "vld1.32 {d4, d5}, [r3]!\n vld1.32 {d6, d7}, [r4]!\n"
#define FOUR_NN                                                           \
    FOUR_OF_ROWS                                                          \
    NEXT_B ROWS("d0[0]", "d2[0]", "d4[0]", "d6[0]")                       \
    NEXT_B ROWS("d0[1]", "d2[1]", "d4[1]", "d6[1]")                       \
    NEXT_B ROWS("d1[0]", "d3[0]", "d5[0]", "d7[0]")                       \
    NEXT_B ROWS("d1[1]", "d3[1]", "d5[1]", "d7[1]")
#define ONE_NN                                                            \
    NEXT_B                                                                \
    "vld1.32 {d0[0]}, [r1]!\n vld1.32 {d2[0]}, [r2]!\n"                   \
    "vld1.32 {d4[0]}, [r3]!\n vld1.32 {d6[0]}, [r4]!\n"                   \
    ROWS("d0[0]", "d2[0]", "d4[0]", "d6[0]")
BY_ROWS_OF_B(nn, "ldm r0, {r1-r5}\n", FOUR_NN, ONE_NN, SKIP_ROWS("r9"))

#define ONE_TN "vld1.32 {d0, d1}, [r1], r2\n" NEXT_B ROWS("d0[0]", "d0[1]", "d1[0]", "d1[1]")
BY_ROWS_OF_B(tn, "ldr r1, [r0]\n ldr r5, [r0, #16]\n ldr r2, [r0, #" STEPS "]\n", ONE_TN ONE_TN ONE_TN ONE_TN, ONE_TN,
             "add r1, r1, r9\n")

/* The rows of B are in r5 to r12, lr counts; the stack holds the remaining k-runs, t, and the remainder of k.
 */
#define B_ROWS(f) f(r5, 8) f(r6, 9) f(r7, 10) f(r8, 11) f(r9, 12) f(r10, 13) f(r11, 14) f(r12, 15)
#define SKIP_B(b, n) "add " #b ", " #b ", r0\n"
#define FOUR_K(b, n)                                                      \
    "vld1.32 {d8, d9}, [" #b "]!\n"                                       \
    "vmla.f32 q" #n ", q0, d8[0]\n vmla.f32 q" #n ", q1, d8[1]\n"         \
    "vmla.f32 q" #n ", q2, d9[0]\n vmla.f32 q" #n ", q3, d9[1]\n"
#define ONE_K(b, n) "vld1.32 {d8[0]}, [" #b "]!\n vmla.f32 q" #n ", q0, d8[0]\n"
/* the four rows of A of the tile as columns: q0 to q3 */
#define TRANSPOSE_A "vtrn.32 q0, q1\n vtrn.32 q2, q3\n vswp d1, d4\n vswp d3, d6\n"
#define COLUMN_TIMES_ALPHA(n) "vmul.f32 q" #n ", q" #n ", d8[0]\n"
/* four columns, in registers of two floats: a row of each 4 x 4 block is one lane of four of them */
#define BY_ROWS(what, a, b, c, d, e, f, g, h)                             \
    what " {d" #a "[0], d" #c "[0], d" #e "[0], d" #g "[0]}, [r3], r2\n"  \
    what " {d" #a "[1], d" #c "[1], d" #e "[1], d" #g "[1]}, [r3], r2\n"  \
    what " {d" #b "[0], d" #d "[0], d" #f "[0], d" #h "[0]}, [r3], r2\n"  \
    what " {d" #b "[1], d" #d "[1], d" #f "[1], d" #h "[1]}, [r3]\n"
#define ADD_COLUMNS(n0, n1, n2, n3)                                       \
    BY_ROWS("vld4.32", 0, 1, 2, 3, 4, 5, 6, 7)                            \
    "vmla.f32 q" #n0 ", q0, d8[1]\n vmla.f32 q" #n1 ", q1, d8[1]\n"       \
    "vmla.f32 q" #n2 ", q2, d8[1]\n vmla.f32 q" #n3 ", q3, d8[1]\n"
#define STORE_COLUMNS                                                     \
    "ldr r0, [sp, #4]\n" SCALE("d8", "s16", "s17", "s18", COLUMN_TIMES_ALPHA) \
    "mov r3, r1\n" ADD_COLUMNS(8, 9, 10, 11)                              \
    "add r3, r1, #16\n" ADD_COLUMNS(12, 13, 14, 15)                       \
    "9: mov r3, r1\n" BY_ROWS("vst4.32", 16, 17, 18, 19, 20, 21, 22, 23)  \
    "add r3, r1, #16\n" BY_ROWS("vst4.32", 24, 25, 26, 27, 28, 29, 30, 31) LEAVE

/* The same for nt and tg, whose A is skipped by r0. */
#define BY_COLUMNS_OF_B(name, operands, four, one, skip)                  \
    __attribute__((naked)) void AG_MICROKERNEL(name)(const ag_tile *t) {  \
        (void)t;                                                          \
        __asm__(                                                          \
            ENTER                                                         \
            "str r0, [sp, #4]\n ldr r1, [r0, #" K_RUNS "]\n str r1, [sp]\n" \
            "add r1, r0, #16\n ldm r1, {r5-r12}\n" operands               \
            "1: ldr r0, [r0, #" K "]\n"                                   \
            "and lr, r0, #3\n str lr, [sp, #8]\n"                         \
            "lsrs lr, r0, #2\n"                                           \
            "beq 3f\n"                                                    \
            "2: subs lr, lr, #1\n" four                                   \
            "bne 2b\n"                                                    \
            "3: ldr lr, [sp, #8]\n"                                       \
            "cmp lr, #0\n"                                                \
            "beq 5f\n"                                                    \
            "4: subs lr, lr, #1\n" one                                    \
            "bne 4b\n"                                                    \
            "5: ldrd r0, lr, [sp]\n"                                      \
            "subs r0, r0, #1\n"                                           \
            "beq 6f\n"                                                    \
            "str r0, [sp]\n"                                              \
            "ldr r0, [lr, #" SKIPS "]\n" skip                             \
            "ldr r0, [lr, #68]\n" B_ROWS(SKIP_B)                          \
            "mov r0, lr\n"                                                \
            "b 1b\n"                                                      \
            "6:" STORE_COLUMNS);                                          \
    }

#define ONE_NT                                                            \
    "vld1.32 {d0[0]}, [r1]!\n vld1.32 {d0[1]}, [r2]!\n"                   \
    "vld1.32 {d1[0]}, [r3]!\n vld1.32 {d1[1]}, [r4]!\n" B_ROWS(ONE_K)
BY_COLUMNS_OF_B(nt, "ldm r0, {r1-r4}\n", FOUR_OF_ROWS TRANSPOSE_A B_ROWS(FOUR_K), ONE_NT, SKIP_ROWS("r0"))

/* Columns of B at arbitrary addresses, which move on by r3. */
#define GATHERED(b, n) "vld1.32 {d8[0]}, [" #b "], r3\n vmla.f32 q" #n ", q0, d8[0]\n"
#define ONE_TG "vld1.32 {d0, d1}, [r1], r2\n" B_ROWS(GATHERED)
BY_COLUMNS_OF_B(tg, "ldr r1, [r0]\n ldrd r2, r3, [r0, #" STEPS "]\n", ONE_TG ONE_TG ONE_TG ONE_TG, ONE_TG,
                "add r1, r1, r0\n")
/* clang-format on */
#else
typedef int ag_microkernel_a32_is_empty;
#endif
