/* Steps of the start-up, in the order of execution. */
#ifndef AG_STARTUP_H
#define AG_STARTUP_H

#define AG_STACK_PAINT 0xa5a55a5a /* without a suffix, for the assembler */

/* Of the core (support/cores): */
void ag_guard_memory(void); /* no access above the RAM and below the stack */

/* For every board, after floating point and the guards are enabled: variables, machine, console, main. */
__attribute__((noreturn)) void ag_begin(void);

void ag_system_start(void); /* system.c: probes for semihosting, opens the console */

#endif
