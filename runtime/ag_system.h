/* What the program asks of the machine that it runs on: text out, files in, exit, memory figures. One
 * implementation per kind of machine (boards/support): bare metal by semihosting or UART, and the host's C
 * library. */
#ifndef AG_SYSTEM_H
#define AG_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_EXIT_FAULT = 70 }; /* the exit code after a processor fault */

/* Write bytes of text to wherever text goes. Never fails: without a listener the text is lost. */
void ag_system_write(const char *text, uint32_t bytes);

/* Open a file for reading: a handle >= 0, or -1 when there is no such file or nobody who serves files. */
int32_t ag_system_open(const char *name);

/* Read `bytes` from `offset`: 0, or -1 when not all of them are there. Reading on where the last call stopped
 * does not seek. */
int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes);

/* Open a file for reading and writing, or with `fresh` make an empty one: a handle >= 0, or -1. */
int32_t ag_system_open_file(const char *name, bool fresh);

/* Write `bytes` at `offset`: 0, or -1 when they could not all be written. They are out of the program when
 * this returns. */
int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes);

/* Give the handle back. */
void ag_system_close(int32_t handle);

/* End the program; `status` becomes the exit code where there is one. Text goes out first. Bare boards park.
 */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void ag_system_exit(int status);

/* Bytes used and present. stack_used is the high-water mark since the start. All 0 where there are no such
 * limits. */
typedef struct ag_memory {
    uint32_t flash_used, flash_bytes;
    uint32_t ram_used, ram_bytes; /* ram_used: variables and the stack's reserve */
    uint32_t stack_used, stack_bytes;
} ag_memory;
ag_memory ag_system_memory(void);

#ifdef __cplusplus
}
#endif
#endif
