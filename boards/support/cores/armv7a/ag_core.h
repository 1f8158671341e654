/* Armv7-A in AArch32: the core interface of the boards' support code. */
#ifndef AG_CORE_H
#define AG_CORE_H

#include <stdbool.h>
#include <stdint.h>

/* Addresses of the machine's devices, terminated by 0: the 1 MB around each is accessible. */
extern const uintptr_t ag_machine_devices[];

/* A semihosting call: `block` holds arguments of the size of a pointer. Without semihosting the exception is
 * taken in the same mode and overwrites lr. */
static inline uintptr_t ag_core_call(uintptr_t operation, const void *block) {
    register uintptr_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("svc 0xab" : "+r"(r0) : "r"(r1) : "r2", "r3", "lr", "memory", "cc");
    return r0;
}

static inline bool ag_core_is_debugged(void) {
    return false; /* a debugger without semihosting passes the call to the vector */
}

static inline bool ag_core_cycles(uint32_t *cycles) {
    *cycles = 0; /* the counter of QEMU, where these boards are, follows the host's time */
    return false;
}

/* The bits of ag_core_ticks, the generic timer, which counts at a constant rate: CNTVCT. */
#define AG_CORE_TICKS 0xffffffffu

static inline uint32_t ag_core_ticks(void) {
    uint32_t low, high;
    __asm__ volatile("isb\n mrrc p15, 1, %0, %1, c14" : "=r"(low), "=r"(high));
    return low;
}

/* Executes so many instructions, a multiple of 8: every second one is a branch. */
static inline void ag_core_loop(uint32_t instructions) {
    uint32_t times = instructions / 2u;
    __asm__ volatile("1: subs %0, %0, #1\n bne 1b" : "+r"(times) : : "cc");
}

/* The same number: six of eight are multiplications, each of the product before it. */
static inline void ag_core_slow_loop(uint32_t instructions) {
    uint32_t times = instructions / 8u, x = 0xffffffffu;
#define AG_SLOW "mul %1, %1, %2\n "
    __asm__ volatile("1: " AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW "subs %0, %0, #1\n bne 1b"
                     : "+r"(times), "+r"(x)
                     : "r"(3u)
                     : "cc");
#undef AG_SLOW
}

static inline void ag_core_let_interrupt(void) {
    __asm__ volatile("cpsie i" ::: "memory");
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
