/* Identity-mapped translation tables with sections of 1 MB (Arm DDI 0406C, B3.5): code and constants are
 * read-only, variables execute-never, plus the machine's devices; everything else, such as the memory above
 * the RAM and below the stack, faults. Caches and unaligned accesses need the MMU. */
#include "ag_core.h"
#include "ag_startup.h"

extern const uint8_t __flash_origin[], __flash_bytes[], __ram_origin[], __ram_bytes[];

enum {
    SECTION = 2,
    DEVICE = SECTION | 1 << 2 | 1 << 4 | 1 << 10,           /* never executed, read and written */
    MEMORY = SECTION | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 10, /* write-back, write-allocate */
    CODE = MEMORY | 1 << 15,                                /* read-only */
    DATA = MEMORY | 1 << 4,
};

static uint32_t table[4096] __attribute__((section(".tables"), aligned(16384)));

static void map(uintptr_t origin, uintptr_t bytes, uint32_t attributes) {
    for (uintptr_t at = origin >> 20; at < (origin + bytes) >> 20; at++) {
        table[at] = at << 20 | attributes;
    }
}

void ag_guard_memory(void) {
    for (uint32_t i = 0; i < 4096; i++) {
        table[i] = 0;
    }
    map((uintptr_t)__flash_origin, (uintptr_t)__flash_bytes, CODE);
    map((uintptr_t)__ram_origin, (uintptr_t)__ram_bytes, DATA);
    for (const uintptr_t *device = ag_machine_devices; *device != 0; device++) {
        map(*device, 1u << 20, DEVICE);
    }
    __asm__ volatile("dsb \n"
                     "mcr p15, 0, %[zero], c8, c7, 0 \n"  /* invalidate the TLBs, */
                     "mcr p15, 0, %[zero], c7, c5, 0 \n"  /* the instruction cache */
                     "mcr p15, 0, %[zero], c7, c5, 6 \n"  /* and the branch predictor */
                     "mcr p15, 0, %[zero], c2, c0, 2 \n"  /* TTBCR: one table */
                     "mcr p15, 0, %[table], c2, c0, 0 \n" /* TTBR0 */
                     "mcr p15, 0, %[one], c3, c0, 0 \n"   /* DACR: domain 0 is checked against the table */
                     "isb \n"
                     "mrc p15, 0, r0, c1, c0, 1 \n"
                     "orr r0, r0, #0x40 \n" /* ACTLR.SMP, without which Cortex-A7 does not cache */
                     "mcr p15, 0, r0, c1, c0, 1 \n"
                     "mrc p15, 0, r0, c1, c0, 0 \n"
                     "bic r0, r0, #2 \n"      /* SCTLR.A: alignment is not checked */
                     "orr r0, r0, #5 \n"      /* MMU, data cache */
                     "orr r0, r0, #0x1800 \n" /* branch prediction, instruction cache */
                     "mcr p15, 0, r0, c1, c0, 0 \n"
                     "isb \n"
                     :
                     : [zero] "r"(0), [one] "r"(1), [table] "r"((uintptr_t)table | 0x48u /* cached walks */)
                     : "r0", "memory");
}
