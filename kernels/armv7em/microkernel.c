/* The micro-kernels of tiles/microkernel.h. VLDM loads several floats with one instruction, so that a
 * multiply-accumulate costs about 1.2 instructions. r0 points to the ag_tile; s0..s15, or s0..s23, are the
 * sums, the other registers operands. `__extension__` permits text of more than 4,095 bytes. */
#include "tiles/microkernel_offsets.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

/* clang-format off */
#define FMA(sum, a, b) "vfma.f32 s" #sum ", s" #a ", s" #b "\n"
/* one row of sums += its a times four b */
#define ROW(s0, s1, s2, s3, a, b0, b1, b2, b3) FMA(s0, a, b0) FMA(s1, a, b1) FMA(s2, a, b2) FMA(s3, a, b3)
#define TILE(a0, a1, a2, a3, b0, b1, b2, b3) \
    ROW(0, 1, 2, 3, a0, b0, b1, b2, b3)       \
    ROW(4, 5, 6, 7, a1, b0, b1, b2, b3)       \
    ROW(8, 9, 10, 11, a2, b0, b1, b2, b3)     \
    ROW(12, 13, 14, 15, a3, b0, b1, b2, b3)
#define SCALE(sum) "vmul.f32 s" #sum ", s" #sum ", s16\n"

#define SCALE_16                                                          \
    SCALE(0) SCALE(1) SCALE(2) SCALE(3) SCALE(4) SCALE(5) SCALE(6)        \
    SCALE(7) SCALE(8) SCALE(9) SCALE(10) SCALE(11) SCALE(12) SCALE(13)    \
    SCALE(14) SCALE(15)

/* ip counts the columns of a run; each tile starts at 0, of rows by rows with its pointers to B on the stack. */
#define ENTER                 \
    "push {r4-r11, lr}\n"     \
    "vpush {d8-d15}\n"        \
    "ldr ip, [r0, #" RUN_COLUMNS "]\n"
#define ZERO                  \
    "adr r1, 9f\n"            \
    "vldm r1, {s0-s15}\n"

/* r1 points to the tile of C */
#define RESULT                                                            \
    "ldr r1, [r0, #" C "]\n"                                              \
    "ldr r4, [r0, #" RUN_COLUMNS "]\n"                                    \
    "sub r4, ip\n add r1, r1, r4, lsl #2\n"

/* Where beta is 1, as in updates of weights: C += alpha * sums, and on to 14. r9 is free. */
#define ADD_ROW_OF_4(s0, s1, s2, s3)                                      \
    "vldm r1, {s20-s23}\n"                                                \
    FMA(20, s0, 16) FMA(21, s1, 16) FMA(22, s2, 16) FMA(23, s3, 16)       \
    "vstm r1, {s20-s23}\n add r1, r2\n"
#define UPDATE                                                            \
    "ldr r9, [r0, #" BETA "]\n"                                           \
    "cmp r9, #0x3f800000\n" /* 1.0f */                                    \
    "bne 13f\n"                                                           \
    "vldr s16, [r0, #" ALPHA "]\n"                                        \
    ADD_ROW_OF_4(0, 1, 2, 3) ADD_ROW_OF_4(4, 5, 6, 7)                     \
    ADD_ROW_OF_4(8, 9, 10, 11) ADD_ROW_OF_4(12, 13, 14, 15)               \
    "b 14f\n"                                                             \
    "13:"

/* To 8, where alpha is 1 and beta 0; otherwise beta is in s17, and the flags are of whether alpha is 1. */
#define ONLY_STORED(alpha, beta)                                          \
    "cmp " alpha ", #0x3f800000\n" /* 1.0f */                             \
    "it eq\n cmpeq " beta ", #0\n"                                        \
    "beq 8f\n"                                                            \
    "vmov s17, " beta "\n"                                                \
    "cmp " alpha ", #0x3f800000\n"

/* C = alpha * sums (+ beta * C), after `update` or "" for sums that no weights are updated by; `next` moves the
 * pointers to B to the next tile, and counts this one */
#define LEAVE(update, next, zeros)                                        \
    "ldr r2, [r0, #" C_STEP "]\n"                                         \
    update                                                                \
    "ldrd r3, r9, [r0, #" ALPHA "]\n"                                     \
    ONLY_STORED("r3", "r9")                                               \
    "beq 7f\n"                                                            \
    "vmov s16, r3\n"                                                      \
    SCALE_16                                                              \
    "7: vcmp.f32 s17, #0.0\n"                                              \
    "vmrs APSR_nzcv, fpscr\n"                                             \
    "beq 8f\n"                                                            \
    "mov r3, r1\n"                                                        \
    "vldm r3, {s20-s23}\n add r3, r2\n"                                   \
    ROW(0, 1, 2, 3, 17, 20, 21, 22, 23)                                   \
    "vldm r3, {s20-s23}\n add r3, r2\n"                                   \
    ROW(4, 5, 6, 7, 17, 20, 21, 22, 23)                                   \
    "vldm r3, {s20-s23}\n add r3, r2\n"                                   \
    ROW(8, 9, 10, 11, 17, 20, 21, 22, 23)                                 \
    "vldm r3, {s20-s23}\n"                                                \
    ROW(12, 13, 14, 15, 17, 20, 21, 22, 23)                               \
    "8: vstm r1, {s0-s3}\n add r1, r2\n"                                  \
    "vstm r1, {s4-s7}\n add r1, r2\n"                                     \
    "vstm r1, {s8-s11}\n add r1, r2\n"                                    \
    "vstm r1, {s12-s15}\n"                                                \
    "14:"                                                                 \
    next                                                                  \
    "bne 0b\n"                                                            \
    "12: vpop {d8-d15}\n"                                                     \
    "pop {r4-r11, pc}\n"                                                  \
    ".align 2\n"                                                          \
    "9: .space " zeros "\n"

/* Each instruction loads three k of one row of A, into s16-s18, s19-s21, s22-s24 or s25-s27. The three k of B
 * are loaded one row after the other, or as the rows of four columns. */
#define A_OF_3 "vldmia r1!, {s16-s18}\n vldmia r2!, {s19-s21}\n vldmia r3!, {s22-s24}\n vldmia r4!, {s25-s27}\n"
#define A_OF_2 "vldmia r1!, {s16-s17}\n vldmia r2!, {s19-s20}\n vldmia r3!, {s22-s23}\n vldmia r4!, {s25-s26}\n"
#define A_OF_1 "vldmia r1!, {s16}\n vldmia r2!, {s19}\n vldmia r3!, {s22}\n vldmia r4!, {s25}\n"
/* one column of sums += one k of A times b */
#define COLUMN(s0, s1, s2, s3, a0, a1, a2, a3, b) FMA(s0, a0, b) FMA(s1, a1, b) FMA(s2, a2, b) FMA(s3, a3, b)
#define COLUMN_OF_3(b, s0, s1, s2, s3)                                              \
    "vldmia " b "!, {s28-s30}\n" COLUMN(s0, s1, s2, s3, 16, 19, 22, 25, 28)         \
    COLUMN(s0, s1, s2, s3, 17, 20, 23, 26, 29) COLUMN(s0, s1, s2, s3, 18, 21, 24, 27, 30)
#define COLUMN_OF_2(b, s0, s1, s2, s3)                                              \
    "vldmia " b "!, {s28-s29}\n" COLUMN(s0, s1, s2, s3, 16, 19, 22, 25, 28)         \
    COLUMN(s0, s1, s2, s3, 17, 20, 23, 26, 29)
#define COLUMN_OF_1(b, s0, s1, s2, s3) "vldmia " b "!, {s28}\n" COLUMN(s0, s1, s2, s3, 16, 19, 22, 25, 28)
#define COLUMNS(of)                                                                 \
    of("r5", 0, 4, 8, 12) of("r6", 1, 5, 9, 13) of("r7", 2, 6, 10, 14) of("r8", 3, 7, 11, 15)
#define NEXT_B "vldm r5, {s28-s31}\n add r5, r8\n"
#define THREE_K_NT A_OF_3 COLUMNS(COLUMN_OF_3)
#define TWO_K_NT A_OF_2 COLUMNS(COLUMN_OF_2)
#define ONE_K_NT A_OF_1 COLUMNS(COLUMN_OF_1)
#define THREE_K_NN                                                                  \
    A_OF_3 NEXT_B TILE(16, 19, 22, 25, 28, 29, 30, 31) NEXT_B                       \
    TILE(17, 20, 23, 26, 28, 29, 30, 31) NEXT_B TILE(18, 21, 24, 27, 28, 29, 30, 31)
#define TWO_K_NN                                                                    \
    A_OF_2 NEXT_B TILE(16, 19, 22, 25, 28, 29, 30, 31) NEXT_B                       \
    TILE(17, 20, 23, 26, 28, 29, 30, 31)
#define ONE_K_NN A_OF_1 NEXT_B TILE(16, 19, 22, 25, 28, 29, 30, 31)
/* The r9 k of a run: six at a time; of three to five that remain, three by the second half of the loop; then
 * two or one. */
#define RUN(three, two, one)             \
    "subs r9, #6\n blt 4f\n"             \
    "2:" three "3:" three                \
    "subs r9, #6\n bge 2b\n"             \
    "4: adds r9, #3\n bge 3b\n"          \
    "adds r9, #1\n bne 5f\n" two "b 6f\n" \
    "5: adds r9, #1\n bne 6f\n" one      \
    "6:"
#define TWO_K_TN                                                          \
    "vldm r1, {s16-s19}\n add r1, r7\n vldm r1, {s20-s23}\n add r1, r7\n" \
    "vldm r5, {s24-s27}\n add r5, r8\n vldm r5, {s28-s31}\n add r5, r8\n" \
    TILE(16, 17, 18, 19, 24, 25, 26, 27)                                 \
    TILE(20, 21, 22, 23, 28, 29, 30, 31)

/* Rows of A times rows of B. r10 points to the tile of C; r11 is the distance from a row of B to the same row
 * of the next tile. */
__extension__ __attribute__((naked)) void AG_MICROKERNEL(nt)(const ag_tile *t) {
    __asm__(
        ENTER
        "add r9, r0, #" B "\n"
        "ldm r9, {r5-r8}\n"
        "ldr r10, [r0, #" C "]\n"
        "ldr r11, [r0, #" B_NEXT "]\n"
        "0: push {r5-r8}\n"
        ZERO
        "ldm r0, {r1-r4}\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "1: ldr r9, [r0, #" K "]\n"
        RUN(THREE_K_NT, TWO_K_NT, ONE_K_NT)
        "subs lr, #1\n"
        "beq 5f\n"
        "ldr r9, [r0, #" A_SKIP "]\n"
        "add r1, r9\n add r2, r9\n add r3, r9\n add r4, r9\n"
        "ldr r9, [r0, #" B_SKIP "]\n"
        "add r5, r9\n add r6, r9\n add r7, r9\n add r8, r9\n"
        "b 1b\n"
        "5: mov r1, r10\n add r10, #16\n"
        LEAVE("", "pop {r5-r8}\n add r5, r11\n add r6, r11\n add r7, r11\n add r8, r11\n subs ip, #4\n", "64"));
}

/* One k of two rows of A times eight columns of B; four k. */
#define ROW_OF_8(s0, s1, s2, s3, s4, s5, s6, s7, a)                                  \
    FMA(s0, a, 24) FMA(s1, a, 25) FMA(s2, a, 26) FMA(s3, a, 27)                      \
    FMA(s4, a, 28) FMA(s5, a, 29) FMA(s6, a, 30) FMA(s7, a, 31)
#define ONE_K_OF_8(a0, a1)                                                           \
    "vldm r5, {s24-s31}\n add r5, r8\n"                                             \
    ROW_OF_8(0, 1, 2, 3, 4, 5, 6, 7, a0) ROW_OF_8(8, 9, 10, 11, 12, 13, 14, 15, a1)
#define ONE_K_OF_PANEL(a0, a1)                                                       \
    "vldmia r5!, {s24-s31}\n"                                                       \
    ROW_OF_8(0, 1, 2, 3, 4, 5, 6, 7, a0) ROW_OF_8(8, 9, 10, 11, 12, 13, 14, 15, a1)
#define FOUR_K_OF_PANEL                                                              \
    "vldmia r1!, {s16-s19}\n vldmia r2!, {s20-s23}\n"                               \
    ONE_K_OF_PANEL(16, 20) ONE_K_OF_PANEL(17, 21) ONE_K_OF_PANEL(18, 22) ONE_K_OF_PANEL(19, 23)
#define FOUR_K_OF_8                                                                  \
    "vldmia r1!, {s16-s19}\n vldmia r2!, {s20-s23}\n"                               \
    ONE_K_OF_8(16, 20) ONE_K_OF_8(17, 21) ONE_K_OF_8(18, 22) ONE_K_OF_8(19, 23)

/* Rows of A times columns of B, contiguous along n: tiles of 2 x 8, rows 0 and 1, then rows 2 and 3, and a last tile
 * of 4 x 4. r6 and r7 point to the tile's columns of C and of B, r3 to the next two rows of A. */
__extension__ __attribute__((naked)) void AG_MICROKERNEL(nn)(const ag_tile *t) {
    __asm__(
        ENTER
        "ldr r6, [r0, #" C "]\n"
        "ldr r7, [r0, #" B "]\n"
        "ldr r8, [r0, #" B_STEP "]\n"
        "0: mov r5, r7\n"
        "cmp ip, #8\n"
        "blt 11f\n"
        "mov r3, r0\n"
        "mov r4, r6\n"
        "10: adr r1, 9f\n"
        "vldm r1, {s0-s15}\n"
        "ldm r3!, {r1, r2}\n"
        "mov r5, r7\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "1: ldr r9, [r0, #" K "]\n"
        "subs r9, #8\n"
        "blt 6f\n"
        "2:" FOUR_K_OF_8 "3:" FOUR_K_OF_8
        "subs r9, #8\n"
        "bge 2b\n"
        "6: adds r9, #4\n"
        "bge 3b\n"
        "adds r9, #4\n"
        "beq 4f\n"
        "7: vldmia r1!, {s16}\n vldmia r2!, {s20}\n"
        ONE_K_OF_8(16, 20)
        "subs r9, #1\n"
        "bne 7b\n"
        "4: subs lr, #1\n"
        "beq 5f\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "add r1, r10\n add r2, r10\n add r5, r11\n"
        "b 1b\n"
        "5: ldr r9, [r0, #" C_STEP "]\n"
        "ldrd r10, r11, [r0, #" ALPHA "]\n"
        ONLY_STORED("r10", "r11")
        "beq 7f\n"
        "vmov s16, r10\n"
        SCALE_16
        "7: vcmp.f32 s17, #0.0\n"
        "vmrs APSR_nzcv, fpscr\n"
        "beq 8f\n"
        "vldm r4, {s24-s31}\n add r10, r4, r9\n"
        ROW_OF_8(0, 1, 2, 3, 4, 5, 6, 7, 17)
        "vldm r10, {s24-s31}\n"
        ROW_OF_8(8, 9, 10, 11, 12, 13, 14, 15, 17)
        "8: vstm r4, {s0-s7}\n add r4, r9\n"
        "vstm r4, {s8-s15}\n add r4, r9\n"
        "add r10, r0, #" B "\n" /* after the rows of A */
        "cmp r3, r10\n"
        "bne 10b\n"
        "add r6, #32\n add r7, #32\n"
        "subs ip, #8\n"
        "bne 0b\n"
        "b 12f\n"
        "11:"
        ZERO
        "ldm r0, {r1-r4}\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "1: ldr r9, [r0, #" K "]\n"
        RUN(THREE_K_NN, TWO_K_NN, ONE_K_NN)
        "subs lr, #1\n"
        "beq 5f\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "add r1, r10\n add r2, r10\n add r3, r10\n add r4, r10\n add r5, r11\n"
        "b 1b\n"
        "5: mov r1, r6\n"
        LEAVE("", "subs ip, #4\n", "64"));
}

/* Rows of A, a_step apart, times a panel of eight columns of B, in tiles of 2 x 8; both rows of the last tile
 * are the same one where the number of rows is odd. r3 points to the next row of A, r4 to the next row of C,
 * r10 to zeros; ip counts rows. */
__extension__ __attribute__((naked)) void AG_MICROKERNEL(np)(const ag_tile *t) {
    __asm__(
        ENTER
        "ldr r3, [r0]\n"
        "ldr r4, [r0, #" C "]\n"
        "ldr r6, [r0, #" A_STEP "]\n"
        "ldr r7, [r0, #" C_STEP "]\n"
        "ldr r8, [r0, #" B "]\n"
        "ldr r11, [r0, #" K "]\n"
        "adr r10, 9f\n"
        "subs ip, #1\n"
        "beq 12f\n"
        "0: mov r1, r3\n"
        "add r2, r3, r6\n"
        "mov r5, r8\n"
        "vldm r10, {s0-s15}\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "1: subs r9, r11, #8\n"
        "blt 6f\n"
        "2:" FOUR_K_OF_PANEL "3:" FOUR_K_OF_PANEL
        "subs r9, #8\n"
        "bge 2b\n"
        "6: adds r9, #8\n"
        "beq 4f\n"
        "subs r9, #4\n"
        "bge 3b\n"
        "adds r9, #4\n"
        "7: vldmia r1!, {s16}\n vldmia r2!, {s20}\n"
        ONE_K_OF_PANEL(16, 20)
        "subs r9, #1\n"
        "bne 7b\n"
        "4: subs lr, #1\n"
        "bne 8f\n"
        "vstm r4, {s0-s7}\n add r4, r7\n"
        "vstm r4, {s8-s15}\n add r4, r7\n"
        "add r3, r3, r6, lsl #1\n"
        "subs ip, #2\n"
        "bgt 0b\n"
        "blt 11f\n"
        "12: movs r6, #0\n" /* the odd row */
        "movs r7, #0\n"
        "b 0b\n"
        "8: ldr r9, [r0, #" A_SKIP "]\n"
        "add r1, r9\n add r2, r9\n"
        "b 1b\n"
        "11: vpop {d8-d15}\n"
        "pop {r4-r11, pc}\n"
        ".align 2\n"
        "9: .space 64\n");
}

/* One k of a tile of 4 x 6, whose sums are s0-s23. r3: the rest of B's step. */
#define THREE(s0, s1, s2, a) FMA(s0, a, 28) FMA(s1, a, 29) FMA(s2, a, 30)
#define ONE_K_OF_6                                                                   \
    "vldm r1, {s24-s27}\n add r1, r7\n vldmia r5!, {s28-s30}\n"                     \
    THREE(0, 1, 2, 24) THREE(6, 7, 8, 25) THREE(12, 13, 14, 26) THREE(18, 19, 20, 27) \
    "vldm r5, {s28-s30}\n add r5, r3\n"                                             \
    THREE(3, 4, 5, 24) THREE(9, 10, 11, 25) THREE(15, 16, 17, 26) THREE(21, 22, 23, 27)
#define SCALE_OF_6(sum) "vmul.f32 s" #sum ", s" #sum ", s24\n"
#define ADD_ROW_OF_6(s0, s1, s2, s3, s4, s5)                                         \
    "vldm r9, {s25-s30}\n add r9, r2\n"                                             \
    FMA(s0, 24, 25) FMA(s1, 24, 26) FMA(s2, 24, 27) FMA(s3, 24, 28) FMA(s4, 24, 29) FMA(s5, 24, 30)
#define UPDATE_ROW_OF_6(s0, s1, s2, s3, s4, s5)                                      \
    "vldm r9, {s25-s30}\n"                                                         \
    FMA(25, s0, 24) FMA(26, s1, 24) FMA(27, s2, 24) FMA(28, s3, 24) FMA(29, s4, 24) FMA(30, s5, 24) \
    "vstm r9, {s25-s30}\n add r9, r2\n"

/* Columns of A, contiguous along m, times columns of B, contiguous along n: tiles of six columns, and of four where
 * four or eight remain. r4 and r6 point to the tile's columns of B and of C, ip counts columns. */
__extension__ __attribute__((naked)) void AG_MICROKERNEL(tn)(const ag_tile *t) {
    __asm__(
        ENTER
        "ldr r4, [r0, #" B "]\n"
        "ldr r6, [r0, #" C "]\n"
        "ldrd r7, r8, [r0, #" A_STEP "]\n"
        "0: mov r5, r4\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "cmp ip, #8\n"
        "bgt 10f\n"
        "cmp ip, #6\n"
        "bne 11f\n"
        "10: adr r1, 9f\n"
        "vldm r1, {s0-s23}\n"
        "ldr r1, [r0]\n"
        "sub r3, r8, #12\n"
        "1: ldr r9, [r0, #" K "]\n"
        "subs r9, #4\n"
        "blt 6f\n"
        "2:"
        ONE_K_OF_6 ONE_K_OF_6 ONE_K_OF_6 ONE_K_OF_6
        "subs r9, #4\n"
        "bge 2b\n"
        "6: adds r9, #4\n"
        "beq 4f\n"
        "3:"
        ONE_K_OF_6
        "subs r9, #1\n"
        "bne 3b\n"
        "4: subs lr, #1\n"
        "beq 5f\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "add r1, r10\n add r5, r11\n"
        "b 1b\n"
        "5: ldr r2, [r0, #" C_STEP "]\n"
        "ldrd r3, r10, [r0, #" ALPHA "]\n"
        "mov r9, r6\n"
        "cmp r10, #0x3f800000\n" /* 1.0f, as in updates of weights */
        "bne 3f\n"
        "vmov s24, r3\n"
        UPDATE_ROW_OF_6(0, 1, 2, 3, 4, 5) UPDATE_ROW_OF_6(6, 7, 8, 9, 10, 11)
        UPDATE_ROW_OF_6(12, 13, 14, 15, 16, 17) UPDATE_ROW_OF_6(18, 19, 20, 21, 22, 23)
        "4: add r4, #24\n add r6, #24\n"
        "subs ip, #6\n"
        "bne 0b\n"
        "b 12f\n"
        "3: vmov s25, r10\n"
        "cmp r3, #0x3f800000\n" /* 1.0f */
        "beq 7f\n"
        "vmov s24, r3\n"
        SCALE_OF_6(0) SCALE_OF_6(1) SCALE_OF_6(2) SCALE_OF_6(3) SCALE_OF_6(4) SCALE_OF_6(5)
        SCALE_OF_6(6) SCALE_OF_6(7) SCALE_OF_6(8) SCALE_OF_6(9) SCALE_OF_6(10) SCALE_OF_6(11)
        SCALE_OF_6(12) SCALE_OF_6(13) SCALE_OF_6(14) SCALE_OF_6(15) SCALE_OF_6(16) SCALE_OF_6(17)
        SCALE_OF_6(18) SCALE_OF_6(19) SCALE_OF_6(20) SCALE_OF_6(21) SCALE_OF_6(22) SCALE_OF_6(23)
        "7: vcmp.f32 s25, #0.0\n"
        "vmrs APSR_nzcv, fpscr\n"
        "beq 8f\n"
        "vmov.f32 s24, s25\n"
        ADD_ROW_OF_6(0, 1, 2, 3, 4, 5) ADD_ROW_OF_6(6, 7, 8, 9, 10, 11)
        ADD_ROW_OF_6(12, 13, 14, 15, 16, 17) ADD_ROW_OF_6(18, 19, 20, 21, 22, 23)
        "8: mov r9, r6\n"
        "vstm r9, {s0-s5}\n add r9, r2\n"
        "vstm r9, {s6-s11}\n add r9, r2\n"
        "vstm r9, {s12-s17}\n add r9, r2\n"
        "vstm r9, {s18-s23}\n"
        "b 4b\n"
        "11:"
        ZERO
        "ldr r1, [r0]\n"
        "1: ldr r9, [r0, #" K "]\n"
        "subs r9, #4\n"
        "blt 6f\n"
        "2:"
        TWO_K_TN
        TWO_K_TN
        "subs r9, #4\n"
        "bge 2b\n"
        "6: adds r9, #2\n"
        "blt 3f\n"
        TWO_K_TN
        "subs r9, #2\n"
        "3: adds r9, #1\n"
        "bne 4f\n"
        "vldm r1, {s16-s19}\n add r1, r7\n vldm r5, {s24-s27}\n add r5, r8\n"
        TILE(16, 17, 18, 19, 24, 25, 26, 27)
        "4: subs lr, #1\n"
        "beq 5f\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "add r1, r10\n add r5, r11\n"
        "b 1b\n"
        "5: mov r1, r6\n"
        LEAVE(UPDATE, "add r4, #16\n add r6, #16\n subs ip, #4\n", "96"));
}

/* Columns of A, contiguous along m, times columns of B at arbitrary addresses (gather). */
__attribute__((naked)) void AG_MICROKERNEL(tg)(const ag_tile *t) {
    __asm__(
        ENTER
        "0:"
        ZERO
        "ldr r1, [r0]\n"
        "ldrd r2, r3, [r0, #16]\n"
        "ldrd r4, r5, [r0, #24]\n"
        "ldrd r7, r8, [r0, #" A_STEP "]\n"
        "ldr lr, [r0, #" K_RUNS "]\n"
        "1: ldr r9, [r0, #" K "]\n"
        "subs r9, #2\n"
        "blt 3f\n"
        "2: vldm r1, {s16-s19}\n add r1, r7\n vldm r1, {s20-s23}\n add r1, r7\n"
        "vldr s24, [r2]\n add r2, r8\n vldr s25, [r3]\n add r3, r8\n"
        "vldr s26, [r4]\n add r4, r8\n vldr s27, [r5]\n add r5, r8\n"
        "vldr s28, [r2]\n add r2, r8\n vldr s29, [r3]\n add r3, r8\n"
        "vldr s30, [r4]\n add r4, r8\n vldr s31, [r5]\n add r5, r8\n"
        "subs r9, #2\n"
        TILE(16, 17, 18, 19, 24, 25, 26, 27)
        TILE(20, 21, 22, 23, 28, 29, 30, 31)
        "bge 2b\n"
        "3: adds r9, #1\n"
        "bne 4f\n"
        "vldm r1, {s16-s19}\n add r1, r7\n"
        "vldr s24, [r2]\n add r2, r8\n vldr s25, [r3]\n add r3, r8\n"
        "vldr s26, [r4]\n add r4, r8\n vldr s27, [r5]\n add r5, r8\n"
        TILE(16, 17, 18, 19, 24, 25, 26, 27)
        "4: subs lr, #1\n"
        "beq 5f\n"
        "ldrd r10, r11, [r0, #" A_SKIP "]\n"
        "add r1, r10\n add r2, r11\n add r3, r11\n add r4, r11\n add r5, r11\n"
        "b 1b\n"
        "5:"
        RESULT
        LEAVE(UPDATE, "subs ip, #4\n", "64"));
}
/* clang-format on */
