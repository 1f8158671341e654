/* Packs a panel of AG_PANEL_COLUMNS columns of B, which the micro-kernel np reads from row to row. */
#ifndef AG_ARMV7EM_PACK_B_H
#define AG_ARMV7EM_PACK_B_H

/* dst[p][j] = element p of row j, for `count` rows, eight, of k elements, `ldb` apart. Where it is inlined,
 * GCC's -Os has no registers for the operands. */
static __attribute__((noinline, unused)) void ag_pack_columns(float *dst, const float *b, ptrdiff_t ldb,
                                                              int32_t k, int32_t count) {
    (void)count;
    const float *b1 = b + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
    const float *b4 = b3 + ldb, *b5 = b4 + ldb, *b6 = b5 + ldb, *b7 = b6 + ldb;
    __asm__ volatile("1: vldmia %1!, {s0}\n vldmia %2!, {s1}\n vldmia %3!, {s2}\n vldmia %4!, {s3}\n"
                     "vldmia %5!, {s4}\n vldmia %6!, {s5}\n vldmia %7!, {s6}\n vldmia %8!, {s7}\n"
                     "subs %9, #1\n"
                     "vstmia %0!, {s0-s7}\n"
                     "bne 1b"
                     : "+r"(dst), "+r"(b), "+r"(b1), "+r"(b2), "+r"(b3), "+r"(b4), "+r"(b5), "+r"(b6),
                       "+r"(b7), "+r"(k)
                     :
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc", "memory");
}

#endif
