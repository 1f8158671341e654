/* Micro-kernels of 8-bit integers. Four weights are loaded as one word and unpacked by two SXTB16; SMLAD adds
 * two products. Sums are in r4..r7. */
#include "microkernel_s8.h"

#include <stddef.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* naked functions read them in registers */

typedef char
    ag_pixels_s8_offsets_match[offsetof(ag_pixels_s8, columns) == 24 && offsetof(ag_pixels_s8, w) == 40 &&
                                       offsetof(ag_pixels_s8, y) == 48 && offsetof(ag_pixels_s8, shift) == 64
                                   ? 1
                                   : -1];

typedef char ag_pixels_of_four_s8_offsets_match[offsetof(ag_pixels_of_four_s8, output) == 36 &&
                                                        offsetof(ag_pixels_of_four_s8, taps) == 60 &&
                                                        offsetof(ag_pixels_of_four_s8, y) == 88 &&
                                                        offsetof(ag_pixels_of_four_s8, pixels) == 96
                                                    ? 1
                                                    : -1];

/* clang-format off */
/* Both halfwords of four weights at `w` times the halfwords of two columns: a and c, b and d */
#define ROW_TIMES_2(w, s0, s1, a, b, c, d)                                                  \
    "ldr lr, [" w "], #4\n"                                                                 \
    "sxtb16 r0, lr\n"                                                                       \
    "smlad " s0 ", r0, " a ", " s0 "\n smlad " s1 ", r0, " b ", " s1 "\n"                   \
    "sxtb16 lr, lr, ror #8\n"                                                               \
    "smlad " s0 ", lr, " c ", " s0 "\n smlad " s1 ", lr, " d ", " s1 "\n"
#define GROUP_2X2                                                                           \
    "ldm r1!, {r8-r11}\n"                                                                   \
    ROW_TIMES_2("r2", "r4", "r5", "r8", "r9", "r10", "r11")                                 \
    ROW_TIMES_2("r3", "r6", "r7", "r8", "r9", "r10", "r11")

#define ROW_TIMES_1(w, s)                                                                   \
    "ldr lr, [" w "], #4\n"                                                                 \
    "sxtb16 r0, lr\n sxtb16 lr, lr, ror #8\n"                                               \
    "smlad " s ", r0, r8, " s "\n smlad " s ", lr, r9, " s "\n"
#define GROUP_4X1                                                                           \
    "ldm r1!, {r8, r9}\n"                                                                   \
    ROW_TIMES_1("r2", "r4") ROW_TIMES_1("r3", "r5") ROW_TIMES_1("r10", "r6") ROW_TIMES_1("r11", "r7")

/* Two taps an iteration, or groups, as counted by `n`; an odd one is the second of the first iteration. */
#define ENTER "push {r0, r4-r11, lr}\n ldr r12, [sp, #40]\n ldm r0, {r4-r7}\n"
#define LOOP(n, body)                                                                       \
    "tst " n ", #1\n bne 2f\n"                                                              \
    "1:" body                                                                               \
    "2:" body                                                                               \
    "subs " n ", #2\n bgt 1b\n"
/* Four groups an iteration; the first iteration is shorter where n is no multiple of 4. lr is used. */
#define LOOP_OF_4(n, body)                                                                  \
    "lsls lr, " n ", #31\n bcc 2f\n bmi 7f\n b 8f\n"                                        \
    "2: bmi 9f\n"                                                                           \
    "1:" body                                                                               \
    "7:" body                                                                               \
    "8:" body                                                                               \
    "9:" body                                                                               \
    "subs " n ", #4\n bgt 1b\n"
#define LEAVE "pop {r0}\n stm r0, {r4-r7}\n pop {r4-r11, pc}\n"

/* Offsets of the fields of ag_pixels_s8. */
#define COLUMNS "24"
#define GROUPS "28"
#define BACK "32"
#define PAIRS "36"
#define W "40" /* and k */
#define Y "48" /* and ldy */
#define BIAS "56"
#define MULTIPLIER "60"
#define SHIFT "64"
#define NEXT(a, b, field)                                                                   \
    "ldr r0, [r12, #" field "]\n ldrd " a ", " b ", [r0], #8\n str r0, [r12, #" field "]\n"
/* ag_below_high of a sum, 2 (high - zero) in `twice` */
#define BELOW_HIGH(v, m, right, twice)                                                      \
    "qadd " v ", " v ", " v "\n smmulr " v ", " v ", " m "\n"                               \
    "add " v ", " v ", " v ", asr #31\n asr " v ", " right "\n"                             \
    "sub " v ", " twice ", " v "\n usat " v ", #8, " v ", asr #1\n"

__attribute__((naked)) void ag_two_pixels_s8_armv7em(ag_pixels_s8 *p) {
    __asm__(
        "push {r0, r4-r11, lr}\n"
        "3: ldr r12, [sp]\n"
        NEXT("r4", "r6", BIAS)
        "mov r5, r4\n mov r7, r6\n"
        "ldrd r2, r3, [r12, #" W "]\n"
        "add r0, r2, r3, lsl #1\n str r0, [r12, #" W "]\n"
        "add r3, r2\n"
        "ldr r1, [r12, #" COLUMNS "]\n"
        "ldr r12, [r12, #" GROUPS "]\n"
        LOOP_OF_4("r12", GROUP_2X2)
        "ldr r12, [sp]\n"
        "ldr r0, [r12, #" BACK "]\n"
        "cbz r0, 4f\n"
        "sub r2, r0\n sub r3, r0\n"
        GROUP_2X2
        "4:" NEXT("r8", "r9", MULTIPLIER)
        "ldr r0, [r12, #" SHIFT "]\n ldrsh r10, [r0], #2\n str r0, [r12, #" SHIFT "]\n"
        "mvn r10, r10\n" /* a byte each; shifts by registers are by their low bytes */
        "tst r10, #0xf0f0f0f0\n lsr r11, r10, #8\n"
        "ldm r12, {r1-r3}\n"
        "bne 6f\n"
        BELOW_HIGH("r4", "r8", "r10", "r1") BELOW_HIGH("r5", "r8", "r10", "r1")
        BELOW_HIGH("r6", "r9", "r11", "r1") BELOW_HIGH("r7", "r9", "r11", "r1")
        "orr r4, r4, r6, lsl #8\n orr r5, r5, r7, lsl #8\n orr r4, r5, r4, lsl #16\n"
        "5: uqsub8 r4, r2, r4\n uadd8 r4, r4, r3\n"
        "ldrd r0, r1, [r12, #" Y "]\n"
        "strh r4, [r0, r1]\n lsr r5, r4, #16\n"
        "strh r5, [r0], #2\n str r0, [r12, #" Y "]\n"
        "ldr r0, [r12, #" PAIRS "]\n subs r0, #1\n str r0, [r12, #" PAIRS "]\n"
        "bne 3b\n"
        "pop {r0, r4-r11, pc}\n"
        "6: push {r4-r7}\n" /* other shifts */
        "mov r0, r12\n mov r1, sp\n"
        "bl ag_two_pixels_below_high_s8_armv7em\n"
        "mov r4, r0\n add sp, #16\n"
        "ldr r12, [sp]\n ldm r12, {r1-r3}\n"
        "b 5b\n");
}

__attribute__((naked)) void ag_products_4x1_s8_armv7em(int32_t *sums, const uint32_t *columns, const int8_t *w,
                                                       int32_t stride, int32_t groups) {
    __asm__(ENTER "add r10, r2, r3, lsl #1\n add r11, r10, r3\n add r3, r2\n" LOOP("r12", GROUP_4X1) LEAVE);
}

#define TAP                                                                                 \
    "ldm r2!, {r8-r10}\n"                                                                   \
    "ldr lr, [r1, r8]\n"                                                                    \
    "sxtab16 r0, r12, lr\n sxtab16 lr, r12, lr, ror #8\n"                                   \
    "smlabb r4, r0, r9, r4\n smlatt r6, r0, r9, r6\n"                                       \
    "smlabb r5, lr, r10, r5\n smlatt r7, lr, r10, r7\n"

/* Offsets of the fields of ag_pixels_of_four_s8. */
#define MULTIPLIERS "16" /* and rights, twice, ranges, lows */
#define RANGES "40" /* and lows */
#define TAPS "60" /* and count */
#define COUNT "64" /* and skipped */
#define OFFSETS "72"
#define STEP "76"
#define X "80"
#define LDY "84" /* and y */
#define FOUR_Y "88"
#define MORE "92"
#define PIXELS "96"
__attribute__((naked)) void ag_pixels_of_four_s8_armv7em(ag_pixels_of_four_s8 *p) {
    __asm__(
        "push {r0, r4-r11, lr}\n"
        "mov r11, r0\n ldr r1, [r11, #" X "]\n ldr r12, [r11, #" OFFSETS "]\n"
        "3: ldm r11, {r4-r7}\n"
        "ldrd r2, r3, [r11, #" TAPS "]\n"
        "7:" LOOP("r3", TAP)
        "ldr r0, [r11, #" MORE "]\n cbz r0, 4f\n"
        "subs r0, #1\n str r0, [r11, #" MORE "]\n"
        "ldrd r3, r0, [r11, #" COUNT "]\n add r2, r0\n b 7b\n"
        "4: add r0, r11, #" MULTIPLIERS "\n ldm r0, {r0, r2, r3, r8-r10, r12, lr}\n"
        "tst r9, #0xf0f0f0f0\n bne 6f\n"
        BELOW_HIGH("r4", "r0", "r9", "r10") "lsr r9, r9, #8\n"
        BELOW_HIGH("r5", "r2", "r9", "r10") "lsr r9, r9, #8\n"
        BELOW_HIGH("r6", "r3", "r9", "r10") "lsr r9, r9, #8\n"
        BELOW_HIGH("r7", "r8", "r9", "r10")
        "orr r4, r4, r5, lsl #8\n orr r4, r4, r6, lsl #16\n orr r4, r4, r7, lsl #24\n"
        "5: uqsub8 r4, r12, r4\n uadd8 r4, r4, lr\n"
        "ldrd r2, r3, [r11, #" LDY "]\n str r4, [r3]\n add r3, r2\n str r3, [r11, #" FOUR_Y "]\n"
        "ldr r0, [r11, #" STEP "]\n add r1, r0\n"
        "ldr r12, [r11, #" OFFSETS "]\n"
        "ldr r0, [r11, #" PIXELS "]\n subs r0, #1\n str r0, [r11, #" PIXELS "]\n"
        "bne 3b\n"
        "pop {r0, r4-r11, pc}\n"
        "6: push {r4-r7}\n str r1, [r11, #" X "]\n" /* other shifts */
        "mov r0, r11\n mov r1, sp\n"
        "bl ag_four_below_high_s8_armv7em\n"
        "mov r4, r0\n add sp, #16\n"
        "ldr r1, [r11, #" X "]\n ldrd r12, lr, [r11, #" RANGES "]\n"
        "b 5b\n");
}
/* clang-format on */

uint32_t ag_below_high_s8_armv7em(int32_t v, int32_t multiplier, int32_t shift, const ag_output_s8 *o) {
    return (uint32_t)(o->high - ag_limited(ag_requantized(v, multiplier, shift) + o->zero, o->low, o->high));
}

/* o->high minus each of four results, for two pixels and the two rows before p->multiplier, which
 * ag_two_pixels_s8_armv7em has moved on. The second pixel is in the low halfword. */
uint32_t ag_two_pixels_below_high_s8_armv7em(const ag_pixels_s8 *p, const int32_t *sums) {
    uint32_t below = 0;
    for (int32_t i = 0; i < 4; i++) {
        const int32_t row = i % 2 - 2, pixel = i < 2 ? 1 : 0;
        below |=
            ag_below_high_s8_armv7em(sums[2 * (i % 2) + pixel], p->multiplier[row], p->shift[row], &p->output)
            << 8 * i;
    }
    return below;
}

/* The same of one pixel of four channels, from p->multiplier on. */
uint32_t ag_four_below_high_s8_armv7em(const ag_pixels_of_four_s8 *p, const int32_t *sums) {
    uint32_t below = 0;
    for (int32_t i = 0; i < 4; i++) {
        below |= ag_below_high_s8_armv7em(sums[i], p->multiplier[i], p->shift[i], &p->output) << 8 * i;
    }
    return below;
}
