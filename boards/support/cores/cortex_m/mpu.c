/* Memory protection unit guards: above the board's RAM (an emulator or a larger chip of the family may have
 * more) and below the stack. The linker script defines their boundaries
 * (autodiff_gen/targets/build_commands.py). */
#include "ag_machine.h"
#include "ag_startup.h"

/* Armv7-M ARM, B3.5; Armv8-M ARM, D1.2 */
#define MPU_TYPE AG_REGISTER(0xe000ed90u)
#define MPU_CTRL AG_REGISTER(0xe000ed94u)
#define MPU_RNR AG_REGISTER(0xe000ed98u)
#define MPU_RBAR AG_REGISTER(0xe000ed9cu)
#define MPU_RASR AG_REGISTER(0xe000eda0u) /* Armv7-M */
#define MPU_RLAR AG_REGISTER(0xe000eda0u) /* Armv8-M */
#define MPU_MAIR0 AG_REGISTER(0xe000edc0u)

extern const uint8_t __ram_origin[], __ram_end[], __guard_below_bytes[], __guard_above_bytes[];

static void forbid(uint32_t region, uint32_t origin, uint32_t bytes) {
#if __ARM_ARCH < 7
    if (bytes < 256u) { /* the smallest region of Armv6-M */
        return;
    }
#endif
    if (bytes == 0) {
        return;
    }
    MPU_RNR = region;
#if __ARM_ARCH >= 8
    /* Armv8-M has no "no access" for privileged code: read-only and execute-never; MSPLIM also guards the
     * stack */
    MPU_RBAR = origin | 2u << 1 | 1u;
    MPU_RLAR = (origin + bytes - 32u) | 1u;
#else
    const uint32_t log2 = 31u - (uint32_t)__builtin_clz(bytes);
    MPU_RBAR = origin;
    MPU_RASR = 1u << 28 /* execute-never */ | 0u << 24 /* no access */ | (log2 - 1u) << 1 | 1u;
#endif
}

void ag_guard_memory(void) {
    if ((MPU_TYPE >> 8 & 255u) < 2u) {
        return;
    }
#if __ARM_ARCH >= 8
    MPU_MAIR0 = 0xffu; /* normal memory */
#endif
    forbid(0, (uint32_t)__ram_origin - (uint32_t)__guard_below_bytes, (uint32_t)__guard_below_bytes);
    forbid(1, (uint32_t)__ram_end, (uint32_t)__guard_above_bytes);
    MPU_CTRL = 1u << 2 /* everything else as without MPU */ | 1u;
    __asm__ volatile("dsb\n isb" ::: "memory");
}
