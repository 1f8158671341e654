/* A stream of sample records. A set is a header, the training records, then the test records; a record is the
 * input's bytes, then the label's. All numbers are little-endian:
 *
 *     offset  0  magic "AGS1"           offset 24  training records
 *             4  version 1                     28  test records
 *             8  bytes of this header (48)     32  epochs
 *            12  bytes of a record             36  0
 *            16  bytes of the input            40  CRC-32 of all records
 *            20  bytes of the label            44  CRC-32 of bytes 0..43
 *
 * A header of 56 bytes says which numbers the bytes stand for, (byte - zero) / divisor: f32 divisor at offset
 * 44, i32 zero at 48, and the CRC-32 of bytes 0..51 at 52. Without them it is byte / 255.
 *
 * There are at most AG_SAMPLES_MOST_EPOCHS epochs, and fewer than 2^32 training records in all of them.
 * Sources: the file samples.bin (semihosting in QEMU, the C library on the host), and a set in memory or
 * flash. */
#ifndef AG_SAMPLES_H
#define AG_SAMPLES_H

#include "ag_io.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_SAMPLES_MOST_EPOCHS = 65535 };

enum {
    AG_SAMPLES_OK = 0,
    AG_SAMPLES_ERR_NONE = -1,    /* no source: no file, no file service, no set in flash */
    AG_SAMPLES_ERR_READ = -2,    /* the source ended early */
    AG_SAMPLES_ERR_HEADER = -3,  /* not a sample set, another version, or damaged */
    AG_SAMPLES_ERR_END = -4,     /* after the last record, or after the end of a record */
    AG_SAMPLES_ERR_RECORDS = -5, /* the records do not match the header's checksum */
    AG_SAMPLES_ERR_EPOCHS = -6,  /* more epochs than a program can count */
};

typedef struct ag_samples {
    uint32_t record_bytes, input_bytes, label_bytes;
    uint32_t train, test, epochs, crc;
    uint32_t header; /* bytes before the first record */
    float divisor;   /* the value of a byte is (byte - zero) / divisor, where floats are bytes */
    int32_t zero;
    uint32_t next; /* index of the record that ag_samples_next reads; training records first */
    ag_read_fn *read;
    void *ctx;
    int32_t handle;
} ag_samples;

/* Opens samples.bin in the working folder; if that is not possible, the set `ag_samples_in_flash`, if one is
 * linked. */
int ag_samples_open(ag_samples *s);

/* Opens any source. */
int ag_samples_open_source(ag_samples *s, ag_read_fn *read, void *ctx);

/* Seeks to a record: 0 is the first training record, s->train the first test record. */
int ag_samples_seek(ag_samples *s, uint32_t index);

/* Copies the next record, s->record_bytes bytes, and advances. */
int ag_samples_next(ag_samples *s, uint8_t *record);

/* Copies bytes of any record, and does not advance. */
int ag_samples_part(const ag_samples *s, uint32_t index, uint32_t offset, void *data, uint32_t bytes);

/* Closes the file; afterwards only opening is allowed. */
void ag_samples_close(ag_samples *s);

/* The meaning of a negative status. */
const char *ag_samples_strstatus(int status);

/* A set in flash: define both in a C file of the firmware (data.py --out FILE.c writes one), or neither. */
extern const uint8_t ag_samples_in_flash[];
extern const uint32_t ag_samples_in_flash_bytes;

#ifdef __cplusplus
}
#endif
#endif
