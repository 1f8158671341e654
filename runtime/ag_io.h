/* Bytes in and out at an offset: how checkpoints and sample sets are moved. Both return 0, or negative when
 * not all of the `bytes` bytes could be moved. The types that <m>_save and <m>_load take. */
#ifndef AG_IO_H
#define AG_IO_H

#include <stdint.h>

typedef int ag_read_fn(void *ctx, uint32_t offset, void *data, uint32_t bytes);
typedef int ag_write_fn(void *ctx, uint32_t offset, const void *data, uint32_t bytes);

#endif
