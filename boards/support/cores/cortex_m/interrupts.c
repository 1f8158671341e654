/* Vectors of the external interrupts, placed after the core's (startup.c), for programs that receive
 * by interrupt. All point to the machine's single handler. */
#include "ag_core.h"
#include "ag_machine.h"

#define H ag_machine_interrupt
#define H8 H, H, H, H, H, H, H, H

__attribute__((section(".vectors.external"), used)) void (*const ag_external_vectors[96])(void) = {
    H8, H8, H8, H8, H8, H8, H8, H8, H8, H8, H8, H8,
};
