/* From reset to main: floating point on, variables set up, the stack painted for its high-water mark. */
#include "ag_machine.h"
#include "ag_startup.h"

#include "ag_system.h"

#define VTOR AG_REGISTER(0xe000ed08u)  /* Armv7-M ARM, B3.2: vector table */
#define CCR AG_REGISTER(0xe000ed14u)   /* configuration and control; bit 19 LOB on Armv8.1-M */
#define CPACR AG_REGISTER(0xe000ed88u) /* access to coprocessors; CP10 and CP11 are the FPU and MVE */

typedef void (*vector)(void);

extern const vector ag_vectors[16];
extern uint32_t __stack_bottom[], __stack_top[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint32_t __data_load[];
extern const vector __init_array_start[], __init_array_end[];

int main(void);
void Reset_Handler(void);
void ag_start(void);

__attribute__((naked)) void Reset_Handler(void) {
    __asm__ volatile("ldr   r0, =__stack_bottom \n"
                     "ldr   r1, =__stack_top \n"
                     "msr   msp, r1                \n" /* where a boot loader, not the core, jumps here */
#if __ARM_ARCH >= 8
                     "msr   msplim, r0 \n"
#endif
                     "ldr   r2, =%c0 \n"
                     "1: \n"
                     "str   r2, [r0], #4 \n"
                     "cmp   r0, r1 \n"
                     "blo   1b \n"
                     "b     ag_start \n"
                     ".ltorg \n"
                     :
                     : "i"(AG_STACK_PAINT));
}

void ag_start(void) {
    VTOR = (uint32_t)ag_vectors;
#if defined(__ARM_FP)
    CPACR |= 0xf00000u;
#endif
#if defined(__ARM_FEATURE_MVE) || __ARM_ARCH_8_1M_MAIN__
    CCR |= 1u << 19;
#endif
    __asm__ volatile("dsb\n isb" ::: "memory");
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    ag_guard_memory();
    ag_machine_init();
    ag_system_start();
    for (const vector *f = __init_array_start; f < __init_array_end; f++) {
        (*f)();
    }
    ag_system_exit(main());
}

static void fault(void) {
    Fault_Handler();
}

/* An application's own handlers replace these by name. */
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
