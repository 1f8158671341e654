/* Identity-mapped translation tables with blocks of 2 MB for the lowest 4 GB (Arm DDI 0487, D5.3): code and
 * constants are read-only, variables execute-never, plus the machine's devices; everything else, such as the
 * memory above the RAM and below the stack, faults. Caches and unaligned accesses need the MMU. */
#include "ag_core.h"
#include "ag_startup.h"

extern const uint8_t __flash_origin[], __flash_bytes[], __ram_origin[], __ram_bytes[];

/* Attributes 0 and 1 of MAIR_EL1: write-back cached memory; devices. */
#define MAIR 0x04ffu
/* 4 GB, tables in cached memory, 4 KB granule, no upper range, 32-bit addresses */
#define TCR (32u | 1u << 8 | 1u << 10 | 3u << 12 | 1u << 23)
#define TABLE 3u
#define MEMORY (1u | 0u << 2 | 3u << 8 | 1u << 10)
#define CODE (MEMORY | 2u << 6) /* read-only */
#define NEVER_EXECUTED ((uint64_t)3 << 53)
#define DATA (MEMORY | NEVER_EXECUTED)
#define DEVICE (1u | 1u << 2 | 1u << 10 | NEVER_EXECUTED)

static uint64_t blocks[4 * 512] __attribute__((section(".tables"), aligned(4096)));
static uint64_t root[512] __attribute__((section(".tables"), aligned(4096)));

static void map(uintptr_t origin, uintptr_t bytes, uint64_t attributes) {
    for (uintptr_t at = origin >> 21; at < (origin + bytes) >> 21; at++) {
        blocks[at] = at << 21 | attributes;
    }
}

void ag_guard_memory(void) {
    for (uintptr_t i = 0; i < 4 * 512; i++) {
        blocks[i] = 0;
    }
    for (uintptr_t i = 0; i < 512; i++) {
        root[i] = i < 4 ? (uintptr_t)&blocks[512 * i] | TABLE : 0;
    }
    map((uintptr_t)__flash_origin, (uintptr_t)__flash_bytes, CODE);
    map((uintptr_t)__ram_origin, (uintptr_t)__ram_bytes, DATA);
    for (const uintptr_t *device = ag_machine_devices; *device != 0; device++) {
        map(*device, (uintptr_t)1 << 21, DEVICE);
    }
    uint64_t control;
    __asm__ volatile("mrs %0, sctlr_el1" : "=r"(control));
    control &=
        ~(uint64_t)(1u << 1 | 1u << 19); /* no alignment check; RAM is executable where the table allows it */
    control |= (uint64_t)(1u << 0 | 1u << 2 | 1u << 12); /* MMU, data cache, instruction cache */
    __asm__ volatile(
        "dsb sy \n"
        "tlbi vmalle1 \n"
        "ic iallu \n"
        "msr mair_el1, %[mair] \n"
        "msr tcr_el1, %[tcr] \n"
        "msr ttbr0_el1, %[root] \n"
        "dsb sy \n"
        "isb \n"
        "msr sctlr_el1, %[control] \n"
        "isb \n"
        :
        : [mair] "r"((uint64_t)MAIR), [tcr] "r"((uint64_t)TCR), [root] "r"(root), [control] "r"(control)
        : "memory");
}
