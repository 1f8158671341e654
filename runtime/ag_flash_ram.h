/* Simulated flash for checkpoints in RAM: bits are programmed from 1 to 0 a word at a time, and power can be
 * cut after any operation. For tests, and for programs that run on the host. */
#ifndef AG_FLASH_RAM_H
#define AG_FLASH_RAM_H

#include "ag_store.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ag_flash_ram {
    uint32_t *word; /* slots * slot_bytes / 4 words, owned by the caller */
    uint32_t slots, slot_bytes;
    uint32_t operations; /* words programmed and slots erased so far */
    uint32_t cut_after;  /* power fails after this many operations; 0: never */
    uint32_t torn;       /* 0: the last operation completes; otherwise it is partial, and this is the seed */
    uint32_t worn_from, worn_to; /* words of this range have bit 0 stuck at 0 */
} ag_flash_ram;

/* Flash with the current contents of `word`; for erased flash, fill it with 0xff before. */
ag_flash ag_flash_ram_open(ag_flash_ram *ram);

#ifdef __cplusplus
}
#endif
#endif
