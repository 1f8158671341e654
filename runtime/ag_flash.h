/* The board's own flash for checkpoints: its controller on hardware, the file flash.bin where somebody serves
 * files (QEMU by semihosting, a program on a computer). */
#ifndef AG_FLASH_H
#define AG_FLASH_H

#include "ag_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill in `flash`; `state_bytes` is what one checkpoint has to hold. 0, or AG_STORE_ERR_NO_FLASH. */
int ag_flash_open(ag_flash *flash, uint32_t state_bytes);

/* The file `name` as flash of `slots` slots; made of 0xff where it is missing or has another size. */
int ag_flash_file_open(ag_flash *flash, const char *name, uint32_t slots, uint32_t slot_bytes);

/* The file flash.bin, in two slots that hold one checkpoint each at least. */
int ag_flash_file_for(ag_flash *flash, uint32_t state_bytes);

#ifdef __cplusplus
}
#endif
#endif
