/* The micro-kernels of tiles/microkernel.h in AArch64: sums in v16 to v31, row-wise (nn, tn: four registers
 * per row of the tile) or column-wise (nt, tg: one register per column). LD1 and ST1 move up to four
 * registers and advance the pointer. */
#if defined __aarch64__
#include "tiles/microkernel.h"

/* Offsets of the fields of ag_tile. */
#define A "0"
#define B "32"
#define STEPS "160"
#define K "168"
#define SKIPS "176"
#define C "184"
#define C_STEP "192"
#define SCALES "196"
typedef char ag_tile_offsets_match[offsetof(ag_tile, b) == 32 && offsetof(ag_tile, a_step) == 160 &&
                                           offsetof(ag_tile, k) == 168 && offsetof(ag_tile, a_skip) == 176 &&
                                           offsetof(ag_tile, c) == 184 && offsetof(ag_tile, c_step) == 192 &&
                                           offsetof(ag_tile, alpha) == 196
                                       ? 1
                                       : -1];

/* clang-format off */
#define OF(n) "v" #n ".4s"
#define EACH_ROW(f) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23) f(24) f(25) f(26) f(27) f(28) f(29) f(30) f(31)
#define ZERO(n) "movi " OF(n) ", #0\n"
#define TIMES_ALPHA(n) "fmul " OF(n) ", " OF(n) ", v0.s[0]\n"
/* sums n to n+3 += v4 to v7 times one lane */
#define ROW(n0, n1, n2, n3, lane)                                         \
    "fmla " OF(n0) ", v4.4s, " lane "\n fmla " OF(n1) ", v5.4s, " lane "\n" \
    "fmla " OF(n2) ", v6.4s, " lane "\n fmla " OF(n3) ", v7.4s, " lane "\n"
#define ROWS(l0, l1, l2, l3)                                              \
    ROW(16, 17, 18, 19, l0) ROW(20, 21, 22, 23, l1) ROW(24, 25, 26, 27, l2) ROW(28, 29, 30, 31, l3)
#define NEXT_B "ld1 {v4.4s-v7.4s}, [x5], x6\n"

/* x1: C, x2: its step; alpha and beta in v0 and v1 */
#define SCALE                                                             \
    "ldr x1, [%[t], #" C "]\n ldrsw x2, [%[t], #" C_STEP "]\n"              \
    "ldp s0, s1, [%[t], #" SCALES "]\n"                                   \
    "fmov s2, #1.0\n fcmp s0, s2\n b.eq 7f\n" EACH_ROW(TIMES_ALPHA)           \
    "7: fcmp s1, #0.0\n b.eq 9f\n"
#define ADD_ROW(n0, n1, n2, n3) "ld1 {v4.4s-v7.4s}, [x3], x2\n" ROW(n0, n1, n2, n3, "v1.s[0]")
#define STORE_ROWS                                                        \
    SCALE "mov x3, x1\n"                                                  \
    ADD_ROW(16, 17, 18, 19) ADD_ROW(20, 21, 22, 23)                       \
    ADD_ROW(24, 25, 26, 27) ADD_ROW(28, 29, 30, 31)                       \
    "9: st1 {v16.4s-v19.4s}, [x1], x2\n st1 {v20.4s-v23.4s}, [x1], x2\n"  \
    "st1 {v24.4s-v27.4s}, [x1], x2\n st1 {v28.4s-v31.4s}, [x1]\n"
/* four columns: a row of each 4 x 4 block is one lane of four registers */
#define ADD_COLUMNS(offset, n0, n1, n2, n3)                               \
    "add x3, x1, #" offset "\n"                                           \
    "ld4 {v4.s-v7.s}[0], [x3], x2\n ld4 {v4.s-v7.s}[1], [x3], x2\n"       \
    "ld4 {v4.s-v7.s}[2], [x3], x2\n ld4 {v4.s-v7.s}[3], [x3]\n"           \
    ROW(n0, n1, n2, n3, "v1.s[0]")
#define STORE_COLUMNS_OF(offset, n0, n3)                                  \
    "add x3, x1, #" offset "\n"                                           \
    "st4 {v" #n0 ".s-v" #n3 ".s}[0], [x3], x2\n st4 {v" #n0 ".s-v" #n3 ".s}[1], [x3], x2\n" \
    "st4 {v" #n0 ".s-v" #n3 ".s}[2], [x3], x2\n st4 {v" #n0 ".s-v" #n3 ".s}[3], [x3]\n"
#define STORE_COLUMNS                                                     \
    SCALE                                                                 \
    ADD_COLUMNS("0", 16, 17, 18, 19) ADD_COLUMNS("16", 20, 21, 22, 23)    \
    ADD_COLUMNS("32", 24, 25, 26, 27) ADD_COLUMNS("48", 28, 29, 30, 31)   \
    "9:" STORE_COLUMNS_OF("0", 16, 19) STORE_COLUMNS_OF("16", 20, 23)     \
    STORE_COLUMNS_OF("32", 24, 27) STORE_COLUMNS_OF("48", 28, 31)

/* What differs: how operands are found, the products of four k and of one, the skips of x7 and x8 bytes between
 * k-runs, how C is stored, and more registers. x11: remaining k-runs; w7, w8: k / 4 and the remainder. */
#define MICROKERNEL(name, operands, four, one, skip, store, registers)    \
    void AG_MICROKERNEL(name)(const ag_tile *t) {                         \
        __asm__ volatile(                                                 \
            operands EACH_ROW(ZERO)                                       \
            "ldrsw x11, [%[t], #172]\n"                                   \
            "1: ldr w8, [%[t], #" K "]\n lsr w7, w8, #2\n and w8, w8, #3\n" \
            "cbz w7, 3f\n"                                                \
            "2: subs w7, w7, #1\n" four                                   \
            "b.ne 2b\n"                                                   \
            "3: cbz w8, 5f\n"                                             \
            "4: subs w8, w8, #1\n" one                                    \
            "b.ne 4b\n"                                                   \
            "5: subs x11, x11, #1\n"                                      \
            "b.eq 6f\n"                                                   \
            "ldpsw x7, x8, [%[t], #" SKIPS "]\n" skip                     \
            "b 1b\n"                                                      \
            "6:" store                                                    \
            :                                                             \
            : [t] "r"(t)                                                  \
            : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x11", registers "v0", "v1", "v2", "v3", "v4", \
              "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", \
              "v27", "v28", "v29", "v30", "v31", "cc", "memory");         \
    }

/* The rows of A are at x1 to x4, columns of B at x5, x6 bytes apart. */
#define A_ROWS "ldp x1, x2, [%[t]]\n ldp x3, x4, [%[t], #16]\n"
#define SKIP_ROWS "add x1, x1, x7\n add x2, x2, x7\n add x3, x3, x7\n add x4, x4, x7\n"
#define FOUR_OF_ROWS "ldr q0, [x1], #16\n ldr q1, [x2], #16\n ldr q2, [x3], #16\n ldr q3, [x4], #16\n"
#define FOUR_NN                                                           \
    FOUR_OF_ROWS                                                          \
    NEXT_B ROWS("v0.s[0]", "v1.s[0]", "v2.s[0]", "v3.s[0]")               \
    NEXT_B ROWS("v0.s[1]", "v1.s[1]", "v2.s[1]", "v3.s[1]")               \
    NEXT_B ROWS("v0.s[2]", "v1.s[2]", "v2.s[2]", "v3.s[2]")               \
    NEXT_B ROWS("v0.s[3]", "v1.s[3]", "v2.s[3]", "v3.s[3]")
#define ONE_NN                                                            \
    NEXT_B "ldr s0, [x1], #4\n ldr s1, [x2], #4\n ldr s2, [x3], #4\n ldr s3, [x4], #4\n" \
    ROWS("v0.s[0]", "v1.s[0]", "v2.s[0]", "v3.s[0]")
MICROKERNEL(nn, A_ROWS "ldr x5, [%[t], #" B "]\n ldrsw x6, [%[t], #164]\n", FOUR_NN, ONE_NN,
            SKIP_ROWS "add x5, x5, x8\n", STORE_ROWS, )

/* Columns of A are at x1, x2 bytes apart. */
#define ONE_TN "ld1 {v0.4s}, [x1], x2\n" NEXT_B ROWS("v0.s[0]", "v0.s[1]", "v0.s[2]", "v0.s[3]")
MICROKERNEL(tn, "ldr x1, [%[t]]\n ldr x5, [%[t], #" B "]\n ldpsw x2, x6, [%[t], #" STEPS "]\n",
            ONE_TN ONE_TN ONE_TN ONE_TN, ONE_TN, "add x1, x1, x7\n add x5, x5, x8\n", STORE_ROWS, )

/* The rows of B are in x5, x6, x9, x10 and x12 to x17, x19 to x24. */
#define B_ROWS(f)                                                         \
    f(x5, 16) f(x6, 17) f(x9, 18) f(x10, 19) f(x12, 20) f(x13, 21) f(x14, 22) f(x15, 23)       \
    f(x16, 24) f(x17, 25) f(x19, 26) f(x20, 27) f(x21, 28) f(x22, 29) f(x23, 30) f(x24, 31)
#define B_POINTERS                                                        \
    "ldp x5, x6, [%[t], #32]\n ldp x9, x10, [%[t], #48]\n ldp x12, x13, [%[t], #64]\n"          \
    "ldp x14, x15, [%[t], #80]\n ldp x16, x17, [%[t], #96]\n ldp x19, x20, [%[t], #112]\n"      \
    "ldp x21, x22, [%[t], #128]\n ldp x23, x24, [%[t], #144]\n"
#define SKIP_B(b, n) "add " #b ", " #b ", x8\n"
#define B_REGISTERS                                                       \
    "x9", "x10", "x12", "x13", "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24",
/* the four rows of A of the tile as columns: v0 to v3 */
#define TRANSPOSE_A                                                       \
    "trn1 v4.4s, v0.4s, v1.4s\n trn2 v5.4s, v0.4s, v1.4s\n"               \
    "trn1 v6.4s, v2.4s, v3.4s\n trn2 v7.4s, v2.4s, v3.4s\n"               \
    "trn1 v0.2d, v4.2d, v6.2d\n trn1 v1.2d, v5.2d, v7.2d\n"               \
    "trn2 v2.2d, v4.2d, v6.2d\n trn2 v3.2d, v5.2d, v7.2d\n"
#define FOUR_K(b, n)                                                      \
    "ldr q4, [" #b "], #16\n"                                             \
    "fmla " OF(n) ", v0.4s, v4.s[0]\n fmla " OF(n) ", v1.4s, v4.s[1]\n"   \
    "fmla " OF(n) ", v2.4s, v4.s[2]\n fmla " OF(n) ", v3.4s, v4.s[3]\n"
#define ONE_K(b, n) "ldr s4, [" #b "], #4\n fmla " OF(n) ", v0.4s, v4.s[0]\n"
#define ONE_NT                                                            \
    "ld1 {v0.s}[0], [x1], #4\n ld1 {v0.s}[1], [x2], #4\n"                 \
    "ld1 {v0.s}[2], [x3], #4\n ld1 {v0.s}[3], [x4], #4\n" B_ROWS(ONE_K)
MICROKERNEL(nt, A_ROWS B_POINTERS, FOUR_OF_ROWS TRANSPOSE_A B_ROWS(FOUR_K), ONE_NT, SKIP_ROWS B_ROWS(SKIP_B),
            STORE_COLUMNS, B_REGISTERS)

/* Columns of B at arbitrary addresses, which move on by x3. */
#define GATHERED(b, n) "ld1 {v4.s}[0], [" #b "], x3\n fmla " OF(n) ", v0.4s, v4.s[0]\n"
#define ONE_TG "ld1 {v0.4s}, [x1], x2\n" B_ROWS(GATHERED)
MICROKERNEL(tg, "ldr x1, [%[t]]\n ldpsw x2, x3, [%[t], #" STEPS "]\n" B_POINTERS, ONE_TG ONE_TG ONE_TG ONE_TG,
            ONE_TG, "add x1, x1, x7\n" B_ROWS(SKIP_B), STORE_COLUMNS, B_REGISTERS)
/* clang-format on */
#else
typedef int ag_microkernel_a64_is_empty;
#endif
