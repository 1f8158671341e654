/* Parts of the start-up, in the order in which they run. */
#ifndef AG_STARTUP_H
#define AG_STARTUP_H

#define AG_STACK_PAINT 0xa5a55a5au

extern void (*const ag_external_vectors[96])(void); /* interrupts.c */

void ag_guard_memory(void); /* mpu.c: no access above the RAM and under the stack */
void ag_system_start(void); /* system.c: asks for semihosting, opens the console */
void Fault_Handler(void);   /* fault.c: all faults */
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);

#endif
