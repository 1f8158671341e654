/* The test's registers and flash instead of the chip's; stm32f4_flash.c models the controller. */
#ifndef STM32F4_REGISTERS_H
#define STM32F4_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#define FLASH_ORIGIN 0x08000000u
#define STORE_ORIGIN 0x080c0000u
#define STORE_SLOTS 2u
#define STORE_SLOT_BYTES 131072u
#define WAIT 10000
#define AG_NO_GENERATOR 1 /* of ag_machine.h */

uint32_t get(uint32_t address);
void set(uint32_t address, uint32_t value);
bool ag_semihosting_present(void);

#endif
