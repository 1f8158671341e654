/* Semihosting (Arm IHI 0100): a debugger or QEMU provides files, console and exit through an instruction of
 * the core (ag_core.h). */
#ifndef AG_SEMIHOSTING_H
#define AG_SEMIHOSTING_H

#include <stdbool.h>
#include <stdint.h>

/* Probes once whether semihosting is available; the functions below may be called only if it is. */
void ag_semihosting_probe(void);
bool ag_semihosting_present(void);

/* 1 while the fault handler may answer the probe's call. */
extern volatile uint32_t ag_semihosting_probing;

/* Modes: "rb", "r+b", "w", "w+b". */
enum {
    AG_SEMIHOSTING_READ = 1,
    AG_SEMIHOSTING_UPDATE = 3,
    AG_SEMIHOSTING_WRITE = 4,
    AG_SEMIHOSTING_FRESH = 7,
};

int32_t ag_semihosting_open(const char *name, uint32_t mode); /* the name ":tt" is the console */
void ag_semihosting_close(int32_t handle);
int32_t ag_semihosting_seek(int32_t handle, uint32_t offset);
uint32_t ag_semihosting_read(int32_t handle, void *data,
                             uint32_t bytes); /* returns the number of bytes not read */
uint32_t ag_semihosting_write(int32_t handle, const void *data,
                              uint32_t bytes); /* returns the number of bytes not written */
void ag_semihosting_exit(int32_t status);

#endif
