/* Packs rows of B into a panel of columns, for the micro-kernels that read B contiguous along n. */
#ifndef AG_NEON_PACK_B_H
#define AG_NEON_PACK_B_H

#include "vec.h"

#include <stddef.h>
#include <stdint.h>

enum { AG_PACKED_K = 64 }; /* 4 KB of stack in AArch64, 2 KB in AArch32 */

/* dst[p][j] = element p of row j, for four rows of k elements with leading dimension ldb; a row of dst is
 * AG_TILE_N long. ST4 stores one lane of four registers contiguously. */
static inline void ag_pack_four(float *dst, const float *r0, ptrdiff_t ldb, int32_t k) {
    const float *r1 = r0 + ldb, *r2 = r1 + ldb, *r3 = r2 + ldb;
    /* clang-format off */
    __asm__ volatile(
#if defined __aarch64__
        "subs %w[k], %w[k], #4\n"
        "b.lt 2f\n"
        "1: ldr q0, [%[r0]], #16\n ldr q1, [%[r1]], #16\n ldr q2, [%[r2]], #16\n ldr q3, [%[r3]], #16\n"
        "subs %w[k], %w[k], #4\n"
        "st4 {v0.s-v3.s}[0], [%[dst]], %[step]\n st4 {v0.s-v3.s}[1], [%[dst]], %[step]\n"
        "st4 {v0.s-v3.s}[2], [%[dst]], %[step]\n st4 {v0.s-v3.s}[3], [%[dst]], %[step]\n"
        "b.ge 1b\n"
        "2: adds %w[k], %w[k], #4\n"
        "b.eq 4f\n"
        "3: ldr s0, [%[r0]], #4\n ldr s1, [%[r1]], #4\n ldr s2, [%[r2]], #4\n ldr s3, [%[r3]], #4\n"
        "subs %w[k], %w[k], #1\n"
        "st4 {v0.s-v3.s}[0], [%[dst]], %[step]\n"
        "b.ne 3b\n"
#else
        "subs %[k], %[k], #4\n"
        "blt 2f\n"
        "1: vld1.32 {d0, d1}, [%[r0]]!\n vld1.32 {d2, d3}, [%[r1]]!\n"
        "vld1.32 {d4, d5}, [%[r2]]!\n vld1.32 {d6, d7}, [%[r3]]!\n"
        "subs %[k], %[k], #4\n"
        "vst4.32 {d0[0], d2[0], d4[0], d6[0]}, [%[dst]], %[step]\n"
        "vst4.32 {d0[1], d2[1], d4[1], d6[1]}, [%[dst]], %[step]\n"
        "vst4.32 {d1[0], d3[0], d5[0], d7[0]}, [%[dst]], %[step]\n"
        "vst4.32 {d1[1], d3[1], d5[1], d7[1]}, [%[dst]], %[step]\n"
        "bge 1b\n"
        "2: adds %[k], %[k], #4\n"
        "beq 4f\n"
        "3: vld1.32 {d0[0]}, [%[r0]]!\n vld1.32 {d2[0]}, [%[r1]]!\n"
        "vld1.32 {d4[0]}, [%[r2]]!\n vld1.32 {d6[0]}, [%[r3]]!\n"
        "subs %[k], %[k], #1\n"
        "vst4.32 {d0[0], d2[0], d4[0], d6[0]}, [%[dst]], %[step]\n"
        "bne 3b\n"
#endif
        "4:\n"
        : [dst] "+r"(dst), [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [k] "+r"(k)
        : [step] "r"((ptrdiff_t)sizeof(float) * AG_TILE_N)
#if defined __aarch64__
        : "v0", "v1", "v2", "v3", "cc", "memory");
#else
        : "q0", "q1", "q2", "q3", "cc", "memory");
#endif
    /* clang-format on */
}

/* dst[p][j] = element p of row j, for AG_TILE_N rows. */
static inline void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb, int32_t k) {
    for (int32_t j = 0; j < AG_TILE_N; j += 4, b += 4 * ldb) {
        ag_pack_four(dst + j, b, ldb, k);
    }
}

#endif
