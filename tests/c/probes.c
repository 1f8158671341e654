/* Instrumented code of known length, for the counting plugin. */
#define AG_PROBE_HINTS 1
#include "ag_console.h"
#include "ag_probe.h"

#if defined(__thumb2__) || defined(__arm__) || defined(__aarch64__)
#define FOUR_NOPS __asm__ volatile("nop\n nop\n nop\n nop" ::: "memory")
#endif

/* The probe that follows ends one halfword before a page of QEMU's Cortex-M. */
#if defined(__thumb2__)
#define TO_THE_END_OF_A_PAGE __asm__ volatile(".balign 1024\n .rept 509\n nop\n .endr" ::: "memory")
#else
#define TO_THE_END_OF_A_PAGE ((void)0)
#endif

int main(void) {
    for (int32_t i = 0; i < 3; i++) {
        AG_PROBE(1);
        FOUR_NOPS;
        AG_PROBE(2);
        AG_PROBE(40);
        FOUR_NOPS;
        FOUR_NOPS;
        AG_PROBE(1);
        FOUR_NOPS;
        AG_PROBE(0);
    }
    TO_THE_END_OF_A_PAGE;
    AG_PROBE(3);
    FOUR_NOPS;
    AG_PROBE(0);
    ag_print("stack 8 16\n");
    return 0;
}
