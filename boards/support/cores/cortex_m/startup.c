/* Start-up from reset: paints the stack for the high-water mark, enables floating point and the guards. */
#include "ag_core.h"
#include "ag_machine.h"
#include "ag_startup.h"

#define VTOR AG_REGISTER(0xe000ed08u)  /* Armv7-M ARM, B3.2: vector table */
#define CCR AG_REGISTER(0xe000ed14u)   /* configuration and control; bit 19 LOB on Armv8.1-M */
#define CPACR AG_REGISTER(0xe000ed88u) /* access to coprocessors; CP10 and CP11 are the FPU and MVE */

typedef void (*vector)(void);

extern const vector ag_vectors[16];
extern uint32_t __stack_bottom[], __stack_top[];

void Reset_Handler(void);
void ag_start(void);

__attribute__((naked)) void Reset_Handler(void) {
    __asm__ volatile(
        ".syntax unified \n" /* Armv6-M code too, except for msplim */
        "ldr   r0, =__stack_bottom \n"
        "ldr   r1, =__stack_top \n"
        "msr   msp, r1                \n" /* needed where a boot loader, not the core, jumps here */
#if __ARM_ARCH >= 8
        "msr   msplim, r0 \n"
#endif
        "ldr   r2, =%c0 \n"
        "1: \n"
        "str   r2, [r0] \n"
        "adds  r0, #4 \n"
        "cmp   r0, r1 \n"
        "blo   1b \n"
        "ldr   r1, =ag_start \n"
        "bx    r1 \n"
        ".ltorg \n"
        :
        : "i"(AG_STACK_PAINT));
}

__attribute__((used)) void ag_start(void) {
    VTOR = (uint32_t)ag_vectors;
#if defined(__ARM_FP)
    CPACR |= 0xf00000u;
#endif
#if defined(__ARM_FEATURE_MVE) || defined(__ARM_ARCH_8_1M_MAIN__)
    CCR |= 1u << 19;
#endif
    __asm__ volatile("dsb\n isb" ::: "memory");
    ag_guard_memory();
    ag_begin();
}

static void fault(void) {
    Fault_Handler();
}

/* An application's handlers override these by name. */
__attribute__((weak)) void SVC_Handler(void) {
    fault();
}
__attribute__((weak)) void PendSV_Handler(void) {
    fault();
}
__attribute__((weak)) void SysTick_Handler(void) {
    fault();
}

__attribute__((section(".vectors"), used)) const vector ag_vectors[16] = {
    (vector)(uint32_t)__stack_top,
    Reset_Handler,
    Fault_Handler, /* NMI */
    Fault_Handler, /* HardFault: the others escalate to it */
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    Fault_Handler,
    0,
    0,
    0,
    SVC_Handler,
    Fault_Handler, /* debug monitor */
    0,
    PendSV_Handler,
    SysTick_Handler,
};
