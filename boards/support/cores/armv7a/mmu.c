/* Translation tables by sections of 1 MB, each address to itself (Arm DDI 0406C, B3.5): code and constants
 * read-only, variables never executed, the machine's devices, and nothing else. What lies above the RAM and
 * under the stack faults. Memory is cached, and unaligned accesses are allowed, only where an MMU says so. */
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
                     "mcr p15, 0, %[zero], c8, c7, 0 \n"  /* TLBs are empty, */
                     "mcr p15, 0, %[zero], c7, c5, 0 \n"  /* the cache of instructions too, */
                     "mcr p15, 0, %[zero], c7, c5, 6 \n"  /* and that of branches */
                     "mcr p15, 0, %[zero], c2, c0, 2 \n"  /* TTBCR: one table */
                     "mcr p15, 0, %[table], c2, c0, 0 \n" /* TTBR0 */
                     "mcr p15, 0, %[one], c3, c0, 0 \n"   /* DACR: domain 0 as the table says */
                     "isb \n"
                     "mrc p15, 0, r0, c1, c0, 1 \n"
                     "orr r0, r0, #0x40 \n" /* ACTLR.SMP, without which Cortex-A7 caches nothing */
                     "mcr p15, 0, r0, c1, c0, 1 \n"
                     "mrc p15, 0, r0, c1, c0, 0 \n"
                     "bic r0, r0, #2 \n"      /* SCTLR.A: alignment is not checked */
                     "orr r0, r0, #5 \n"      /* MMU, data cache */
                     "orr r0, r0, #0x1800 \n" /* branch prediction, cache of instructions */
                     "mcr p15, 0, r0, c1, c0, 0 \n"
                     "isb \n"
                     :
                     : [zero] "r"(0), [one] "r"(1), [table] "r"((uintptr_t)table | 0x48u /* cached walks */)
                     : "r0", "memory");
}
