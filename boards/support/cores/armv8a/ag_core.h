/* Armv8-A in AArch64, at EL1: the core interface of the boards' support code. */
#ifndef AG_CORE_H
#define AG_CORE_H

#include <stdbool.h>
#include <stdint.h>

/* A function in assembly: GCC has no naked functions in AArch64. */
#define AG_FUNCTION(name, section, body)                                                                     \
    __asm__(".section " section ", \"ax\" \n.global " #name " \n.type " #name                                \
            ", %function \n.balign 4 \n" #name ": \n" body ".size " #name ", . - " #name " \n.previous \n");
#define AG_QUOTED(text) #text
#define AG_TEXT(macro) AG_QUOTED(macro)

/* Addresses of the machine's devices, terminated by 0: the 2 MB around each is accessible. */
extern const uintptr_t ag_machine_devices[];

/* A semihosting call: `block` holds arguments of the size of a pointer. Without semihosting, the exception
 * handler overwrites x2 and x3. */
static inline uintptr_t ag_core_call(uintptr_t operation, const void *block) {
    register uintptr_t x0 __asm__("x0") = operation;
    register const void *x1 __asm__("x1") = block;
    __asm__ volatile("hlt 0xf000" : "+r"(x0) : "r"(x1) : "x2", "x3", "memory", "cc");
    return x0;
}

static inline bool ag_core_is_debugged(void) {
    return false; /* a debugger without semihosting passes the call to the vector */
}

static inline bool ag_core_cycles(uint32_t *cycles) {
    *cycles = 0; /* the counter of QEMU, where these boards are, follows the host's time */
    return false;
}

/* The bits of ag_core_ticks, the generic timer, which counts at a constant rate: CNTVCT_EL0. */
#define AG_CORE_TICKS 0xffffffffu

static inline uint32_t ag_core_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(ticks));
    return (uint32_t)ticks;
}

/* Executes so many instructions, a multiple of 8: every second one is a branch. */
static inline void ag_core_loop(uint32_t instructions) {
    uint32_t times = instructions / 2u;
    __asm__ volatile("1: subs %w0, %w0, #1\n b.ne 1b" : "+r"(times) : : "cc");
}

/* The same number: six of eight are multiplications, each of the product before it. */
static inline void ag_core_slow_loop(uint32_t instructions) {
    uint32_t times = instructions / 8u, x = 0xffffffffu;
#define AG_SLOW "mul %w1, %w1, %w2\n "
    __asm__ volatile("1: " AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW AG_SLOW "subs %w0, %w0, #1\n b.ne 1b"
                     : "+r"(times), "+r"(x)
                     : "r"(3u)
                     : "cc");
#undef AG_SLOW
}

static inline void ag_core_let_interrupt(void) {
    __asm__ volatile("msr daifclr, #2" ::: "memory");
}

/* Sleeps while *written == *read. An interrupt between the check and the sleep stays pending and ends the
 * sleep. */
static inline void ag_core_wait_while_equal(const volatile uint32_t *written, const volatile uint32_t *read) {
    __asm__ volatile("msr daifset, #2" ::: "memory");
    if (*written == *read) {
        __asm__ volatile("wfi");
    }
    __asm__ volatile("msr daifclr, #2\n isb" ::: "memory");
}

#endif
