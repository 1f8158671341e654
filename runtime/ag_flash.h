/* The board's flash for checkpoints: the flash controller on hardware, otherwise the file flash.bin where
 * files are available (QEMU by semihosting, a program on the host). */
#ifndef AG_FLASH_H
#define AG_FLASH_H

#include "ag_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in `flash`; `state_bytes` is the size of one checkpoint. Returns 0, AG_STORE_ERR_NO_FLASH or, of a
 * file, AG_STORE_ERR_SIZE. */
int ag_flash_open(ag_flash *flash, uint32_t state_bytes);

/* The file `name` as flash of `slots` slots; created with 0xff where it is missing or blank. One of another
 * size, which may hold checkpoints, stays as it is: AG_STORE_ERR_SIZE. */
int ag_flash_file_open(ag_flash *flash, const char *name, uint32_t slots, uint32_t slot_bytes);

/* The file flash.bin, with two slots that each hold at least one checkpoint. */
int ag_flash_file_for(ag_flash *flash, uint32_t state_bytes);

#ifdef __cplusplus
}
#endif
#endif
