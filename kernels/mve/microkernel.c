/* The micro-kernels of tiles/microkernel.h with Helium: one column of the tile per lane, four rows of sums in
 * q0..q3, two k of B in q4 and q5. The loops are low-overhead loops (DLS, LE). */
#include "tiles/microkernel_offsets.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

/* clang-format off */
/* one k: the sums += four operands in core registers times a vector of B */
#define FMA4(q, r0, r1, r2, r3)                                           \
    "vfma.f32 q0, " q ", " r0 "\n vfma.f32 q1, " q ", " r1 "\n"           \
    "vfma.f32 q2, " q ", " r2 "\n vfma.f32 q3, " q ", " r3 "\n"

#define ENTER                                                             \
    "push {r4-r11, lr}\n"                                                 \
    "vpush {d8-d13}\n"                                                    \
    "sub sp, #4\n"                                                        \
    "vmov.i32 q0, #0\n vmov.i32 q1, #0\n"                                 \
    "vmov.i32 q2, #0\n vmov.i32 q3, #0\n"                                 \
    "ldr r1, [r0, #" K_RUNS "]\n"                                       \
    "str r1, [sp]\n" /* remaining k-runs */

/* C = alpha * sums (+ beta * C), then return */
#define LEAVE                                                             \
    "ldrd r1, r2, [r0, #" C "]\n" /* and c_step */                        \
    "ldrd r3, r4, [r0, #" ALPHA "]\n" /* and beta */                      \
    "vmul.f32 q0, q0, r3\n vmul.f32 q1, q1, r3\n"                         \
    "vmul.f32 q2, q2, r3\n vmul.f32 q3, q3, r3\n"                         \
    "lsls r5, r4, #1\n" /* +0 and -0 */                                   \
    "beq 8f\n"                                                            \
    "mov r6, r1\n"                                                        \
    "vldrw.32 q4, [r6]\n add r6, r2\n vldrw.32 q5, [r6]\n add r6, r2\n"   \
    "vfma.f32 q0, q4, r4\n vfma.f32 q1, q5, r4\n"                         \
    "vldrw.32 q4, [r6]\n add r6, r2\n vldrw.32 q5, [r6]\n"                \
    "vfma.f32 q2, q4, r4\n vfma.f32 q3, q5, r4\n"                         \
    "8: vstrw.32 q0, [r1]\n add r1, r2\n"                                 \
    "vstrw.32 q1, [r1]\n add r1, r2\n"                                    \
    "vstrw.32 q2, [r1]\n add r1, r2\n"                                    \
    "vstrw.32 q3, [r1]\n"                                                 \
    "add sp, #4\n"                                                        \
    "vpop {d8-d13}\n"                                                     \
    "pop {r4-r11, pc}\n"

/* Four columns of B of one k, and on to the next: contiguous, or gathered at offsets from b[0] in q6. */
#define ROW(q) "vldrw.32 " q ", [r5]\n add r5, r12\n"
#define GATHER(q) "vldrw.u32 " q ", [r5, q6]\n add r5, r12\n"
#define OFFSETS "vldrw.32 q6, [r0, #" B "]\n vsub.i32 q6, q6, r5\n"

/* one or two k of the rows of A, r1 to r4, times the same k of B; a row is loaded in pairs of floats */
#define ONE_OF_ROWS(b)                                                    \
    b("q4")                                                               \
    "ldr r6, [r1], #4\n ldr r7, [r2], #4\n"                               \
    "ldr r8, [r3], #4\n ldr r9, [r4], #4\n"                               \
    FMA4("q4", "r6", "r7", "r8", "r9")
#define TWO_OF_ROWS(b)                                                    \
    b("q4") b("q5")                                                       \
    "ldrd r6, r7, [r1], #8\n ldrd r8, r9, [r2], #8\n"                     \
    "vfma.f32 q0, q4, r6\n vfma.f32 q1, q4, r8\n"                         \
    "vfma.f32 q0, q5, r7\n vfma.f32 q1, q5, r9\n"                         \
    "ldrd r6, r7, [r3], #8\n ldrd r8, r9, [r4], #8\n"                     \
    "vfma.f32 q2, q4, r6\n vfma.f32 q3, q4, r8\n"                         \
    "vfma.f32 q2, q5, r7\n vfma.f32 q3, q5, r9\n"
/* one or two k of four contiguous columns of A at r1, r2 bytes apart */
#define COLUMNS(b, q)                                                     \
    b(q)                                                                  \
    "ldrd r6, r7, [r1]\n ldrd r8, r9, [r1, #8]\n add r1, r2\n"            \
    FMA4(q, "r6", "r7", "r8", "r9")
#define ONE_OF_COLUMNS(b) COLUMNS(b, "q4")
#define TWO_OF_COLUMNS(b) COLUMNS(b, "q4") COLUMNS(b, "q5")

#define OPERANDS_OF_ROWS(b_step) "ldm r0, {r1-r5}\n" b_step
#define OPERANDS_OF_COLUMNS                                               \
    "ldr r1, [r0]\n"                                                      \
    "ldr r5, [r0, #" B "]\n"                                              \
    "ldrd r2, r12, [r0, #" A_STEP "]\n" /* and b_step */
#define SKIP_ROWS "add r1, r10\n add r2, r10\n add r3, r10\n add r4, r10\n"
#define SKIP_COLUMNS "add r1, r10\n"

/* What differs: how operands are found, the products of one k and of two, and the skip of A between k-runs.
 * r10 and r11 are free there. */
#define MICROKERNEL(name, operands, one, two, skip)                       \
    __attribute__((naked)) void AG_MICROKERNEL(name)(const ag_tile *t) {  \
        __asm__(                                                          \
            ENTER                                                         \
            operands                                                      \
            "1: ldr lr, [r0, #" K "]\n"                                   \
            "and r10, lr, #1\n"                                           \
            "lsrs lr, lr, #1\n"                                           \
            "beq 3f\n"                                                    \
            "dls lr, lr\n"                                                \
            "2:" two                                                      \
            "le lr, 2b\n"                                                 \
            "3: cmp r10, #0\n"                                            \
            "beq 4f\n"                                                    \
            one                                                           \
            "4: ldr r10, [sp]\n"                                          \
            "subs r10, #1\n"                                              \
            "beq 5f\n"                                                    \
            "str r10, [sp]\n"                                             \
            "ldrd r10, r11, [r0, #" A_SKIP "]\n"                          \
            skip                                                          \
            "add r5, r11\n"                                               \
            "b 1b\n"                                                      \
            "5:"                                                          \
            LEAVE);                                                       \
    }

MICROKERNEL(nn, OPERANDS_OF_ROWS("ldr r12, [r0, #" B_STEP "]\n"), ONE_OF_ROWS(ROW), TWO_OF_ROWS(ROW), SKIP_ROWS)
MICROKERNEL(nt, OPERANDS_OF_ROWS("mov r12, #4\n") OFFSETS, ONE_OF_ROWS(GATHER), TWO_OF_ROWS(GATHER), SKIP_ROWS)
MICROKERNEL(tn, OPERANDS_OF_COLUMNS, ONE_OF_COLUMNS(ROW), TWO_OF_COLUMNS(ROW), SKIP_COLUMNS)
MICROKERNEL(tg, OPERANDS_OF_COLUMNS OFFSETS, ONE_OF_COLUMNS(GATHER), TWO_OF_COLUMNS(GATHER), SKIP_COLUMNS)
/* clang-format on */
