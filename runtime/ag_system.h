/* The interface to the machine: text output, file input, exit, memory usage. One implementation per kind of
 * machine (boards/support): bare metal by semihosting or UART, and the host's C library. */
#ifndef AG_SYSTEM_H
#define AG_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_EXIT_FAULT = 70 }; /* the exit code after a processor fault */

/* Writes text to the console. Never fails: without a console the text is lost. */
void ag_system_write(const char *text, uint32_t bytes);

/* Opens a file for reading: a handle >= 0, or -1 when there is no such file or no file service. */
int32_t ag_system_open(const char *name);

/* Reads `bytes` from `offset`: 0, or -1 when not all of them are available. A sequential read does not seek.
 */
int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes);

/* Opens a file for reading and writing, or with `fresh` creates an empty one: a handle >= 0, or -1. */
int32_t ag_system_open_file(const char *name, bool fresh);

/* Writes `bytes` at `offset`: 0, or -1 when not all could be written. The data has left the program when this
 * returns. */
int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes);

/* Closes the handle. */
void ag_system_close(int32_t handle);

/* Ends the program after flushing text; `status` becomes the exit code where there is one. Bare-metal boards
 * loop forever. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void ag_system_exit(int status);

/* Cycles of the core, modulo 2^32; in QEMU with -icount, executed instructions, if it is called again before
 * the timer wraps: on Cortex-M SysTick, after 100 million instructions or more. Always 0 where neither is
 * known. */
uint32_t ag_system_cycles(void);

/* Random bytes that nobody else knows, for noise: 0, or -1 where there is no source of them, or where it
 * fails. */
int ag_system_random(void *data, uint32_t bytes);

/* Bytes used and available. stack_used is the high-water mark since the start. All 0 where there are no such
 * limits. */
typedef struct ag_memory {
    uint32_t flash_used, flash_bytes;
    uint32_t ram_used, ram_bytes; /* ram_used: variables and the reserved stack */
    uint32_t stack_used, stack_bytes;
} ag_memory;
ag_memory ag_system_memory(void);

#ifdef __cplusplus
}
#endif
#endif
