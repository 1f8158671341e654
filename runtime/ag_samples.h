/* The next sample: a stream of records, wherever they lie. A set is a header, the records to train on, then
 * the records to test on; a record is the input's bytes, then the label's. All numbers little-endian:
 *
 *     offset 0  magic "AGS1"          4  version 1            8  bytes of this header (48)   12  bytes of a
 * record 16  bytes of the input   20  bytes of the label  24  records to train on        28  records to test
 * on 32  epochs               36  0                   40  CRC-32 of all records      44  CRC-32 of bytes
 * 0..43
 *
 * Sources: the file samples.bin (semihosting in QEMU, the C library on the host), and a set in memory or
 * flash. */
#ifndef AG_SAMPLES_H
#define AG_SAMPLES_H

#include "ag_io.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AG_SAMPLES_OK = 0,
    AG_SAMPLES_ERR_NONE = -1,    /* no source: no file, nobody who serves files, no set in flash */
    AG_SAMPLES_ERR_READ = -2,    /* the source ended early */
    AG_SAMPLES_ERR_HEADER = -3,  /* not a sample set, another version, or damaged */
    AG_SAMPLES_ERR_END = -4,     /* seek behind the last record */
    AG_SAMPLES_ERR_RECORDS = -5, /* the records are not those that the header's checksum names */
};

typedef struct ag_samples {
    uint32_t record_bytes, input_bytes, label_bytes;
    uint32_t train, test, epochs, crc;
    uint32_t next; /* index of the record that ag_samples_next reads; training records first */
    ag_read_fn *read;
    void *ctx;
    int32_t handle;
} ag_samples;

/* Open samples.bin in the working folder; where nobody serves files, the set `ag_samples_in_flash`, if one is
 * linked. */
int ag_samples_open(ag_samples *s);

/* Open any source. */
int ag_samples_open_source(ag_samples *s, ag_read_fn *read, void *ctx);

/* Go to a record: 0 for the first to train on, s->train for the first to test on. */
int ag_samples_seek(ag_samples *s, uint32_t index);

/* Copy the next record, s->record_bytes bytes, and go on to the one behind it. */
int ag_samples_next(ag_samples *s, uint8_t *record);

/* Give a file back; afterwards only opening is allowed. */
void ag_samples_close(ag_samples *s);

/* What a negative status means. */
const char *ag_samples_strstatus(int status);

/* A set in flash: define both in a C file of the firmware (data.py --c writes one), or neither. */
extern const uint8_t ag_samples_in_flash[];
extern const uint32_t ag_samples_in_flash_bytes;

#ifdef __cplusplus
}
#endif
#endif
