/* Read and write callbacks at an offset, for checkpoints and sample sets: the types of the arguments of
 * <m>_save and <m>_load. Both return 0, or a negative value when not all of the `bytes` bytes could be
 * transferred. */
#ifndef AG_IO_H
#define AG_IO_H

#include <stdint.h>

typedef int ag_read_fn(void *ctx, uint32_t offset, void *data, uint32_t bytes);
typedef int ag_write_fn(void *ctx, uint32_t offset, const void *data, uint32_t bytes);

#define AG_ANY_PROGRAM 0u /* loads a checkpoint whatever its program is: no program has this number */

/* A part of a state that is not in one piece. */
typedef struct ag_part {
    void *at;
    uint32_t bytes;
} ag_part;

#endif
