/* Cortex-M: the core interface of the boards' support code. */
#ifndef AG_CORE_H
#define AG_CORE_H

#include "ag_machine.h"

#include <stdbool.h>

#define AG_NVIC_ENABLE(number) (AG_REGISTER(0xe000e100u + 4u * ((number) / 32u)) = 1u << (number) % 32u)

extern void (*const ag_external_vectors[96])(void); /* interrupts.c */

void Fault_Handler(void); /* fault.c: all faults */
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);

/* A semihosting call: `block` holds arguments of the size of a pointer. */
static inline uintptr_t ag_core_call(uintptr_t operation, const void *block) {
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory", "cc");
    return r0;
}

/* True where a debugger is attached: one without semihosting would halt the core at the call. Armv7-M ARM,
 * C1.6.2: DHCSR, bit 0 C_DEBUGEN. */
static inline bool ag_core_is_debugged(void) {
    return (AG_REGISTER(0xe000edf0u) & 1u) != 0;
}

/* The cycle counter of the DWT, which is switched on: false on a core without the counter, as in QEMU; 0 on
 * Armv6-M. Armv7-M ARM, C1.6 and C1.8: DEMCR, bit 24 TRCENA; DWT_CTRL, bit 0 CYCCNTENA; the Cortex-M7
 * has the lock. */
static inline bool ag_core_cycles(uint32_t *cycles) {
#if __ARM_ARCH >= 7
    AG_REGISTER(0xe000edfcu) |= 1u << 24;
    AG_REGISTER(0xe0001fb0u) = 0xc5acce55u;
    AG_REGISTER(0xe0001000u) |= 1u;
    *cycles = AG_REGISTER(0xe0001004u);
    return (AG_REGISTER(0xe0001000u) & 1u) != 0;
#else
    *cycles = 0;
    return true;
#endif
}

/* The bits of ag_core_ticks, which counts at a constant rate: SysTick, or always 0 where another program uses
 * it. Armv7-M ARM, B3.3: CSR, bit 2 the clock of the core, bit 0 ENABLE. */
enum { AG_CORE_TICKS = 0xffffff };

static inline uint32_t ag_core_ticks(void) {
    if ((AG_REGISTER(0xe000e010u) & 1u) == 0) {
        AG_REGISTER(0xe000e014u) = AG_CORE_TICKS;
        AG_REGISTER(0xe000e018u) = 0;
        AG_REGISTER(0xe000e010u) = 5u;
    }
    if ((AG_REGISTER(0xe000e010u) & 5u) != 5u || AG_REGISTER(0xe000e014u) != AG_CORE_TICKS) {
        return 0;
    }
    return AG_CORE_TICKS - AG_REGISTER(0xe000e018u);
}

/* Executes so many instructions, a multiple of 8: every second one is a branch. GCC assembles code for
 * Armv6-M in another syntax unless the code says so. */
static inline void ag_core_loop(uint32_t instructions) {
    uint32_t times = instructions / 2u;
    __asm__ volatile(".syntax unified\n 1: subs %0, %0, #1\n bne 1b" : "+l"(times) : : "cc");
}

/* The same number: six of eight are divisions, or multiplications where the core cannot divide. */
static inline void ag_core_slow_loop(uint32_t instructions) {
    uint32_t times = instructions / 8u, x = 0xffffffffu;
#if __ARM_ARCH >= 7
#define AG_SLOW "udiv %1, %1, %2\n "
#else
#define AG_SLOW "muls %1, %2, %1\n "
#endif
    __asm__ volatile(".syntax unified\n 1: " AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW
                     "subs %0, %0, #1\n bne 1b"
                     : "+l"(times), "+l"(x)
                     : "l"(1u)
                     : "cc");
#undef AG_SLOW
}

static inline void ag_core_let_interrupt(void) {
    __asm__ volatile("" ::"r"(ag_external_vectors)); /* a reference, so that the linker keeps them */
}

/* Sleeps while *written == *read. An interrupt between the check and the sleep stays pending and ends the
 * sleep. */
static inline void ag_core_wait_while_equal(const volatile uint32_t *written, const volatile uint32_t *read) {
    __asm__ volatile("cpsid i" ::: "memory");
    if (*written == *read) {
        __asm__ volatile("wfi");
    }
    __asm__ volatile("cpsie i\n isb" ::: "memory");
}

#endif
