/* A checkpoint: magic "AGCK", format, graph id, program, round of federated training (0 outside it), bytes of
 * state, CRC-32 of the state, CRC-32 of the seven words before; then the state. No pointer but `ctx` may be
 * NULL. */
#ifndef AG_CHECKPOINT_H
#define AG_CHECKPOINT_H

#include <stdint.h>

#include "ag_crc32.h"
#include "ag_io.h"
#include "ag_status.h"

#define AG_CHECKPOINT_MAGIC 0x4b434741u
#define AG_CHECKPOINT_FORMAT 2u
#define AG_CHECKPOINT_HEADER 32u
#define AG_CHECKPOINT_BEGIN 8u /* magic and format, which all formats begin with */

/* Write a state of `count` parts, one after the other. Returns AG_STATUS_OK or AG_STATUS_IO. */
static inline int ag_checkpoint_save_parts(const ag_part *parts, uint32_t count, uint32_t graph_id,
                                           uint32_t program, ag_write_fn *write, void *ctx) {
    uint32_t header[8];
    uint32_t bytes = 0, crc = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += parts[i].bytes;
        crc = ag_crc32(crc, parts[i].at, parts[i].bytes);
    }
    header[0] = AG_CHECKPOINT_MAGIC;
    header[1] = AG_CHECKPOINT_FORMAT;
    header[2] = graph_id;
    header[3] = program;
    header[4] = 0;
    header[5] = bytes;
    header[6] = crc;
    header[7] = ag_crc32(0, header, AG_CHECKPOINT_HEADER - 4u);
    if (write(ctx, 0, header, AG_CHECKPOINT_HEADER) != 0) {
        return AG_STATUS_IO;
    }
    uint32_t offset = AG_CHECKPOINT_HEADER;
    for (uint32_t i = 0; i < count; i++) {
        if (write(ctx, offset, parts[i].at, parts[i].bytes) != 0) {
            return AG_STATUS_IO;
        }
        offset += parts[i].bytes;
    }
    return AG_STATUS_OK;
}

/* Read a state of `count` parts; all of it is checked before any of it changes. Returns AG_STATUS_OK,
 * AG_STATUS_IO, AG_STATUS_FORMAT for one of another format, AG_STATUS_CHECKPOINT for one that is damaged or
 * of another model, or AG_STATUS_PROGRAM for one of another program than `program`, unless that is
 * AG_ANY_PROGRAM. */
static inline int ag_checkpoint_load_parts(const ag_part *parts, uint32_t count, uint32_t graph_id,
                                           uint32_t program, ag_read_fn *read, void *ctx) {
    uint32_t header[8];
    uint32_t chunk[16];
    uint32_t bytes = 0, crc = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += parts[i].bytes;
    }
    if (read(ctx, 0, header, AG_CHECKPOINT_BEGIN) != 0) {
        return AG_STATUS_IO;
    }
    if (header[0] != AG_CHECKPOINT_MAGIC) {
        return AG_STATUS_CHECKPOINT;
    }
    if (header[1] != AG_CHECKPOINT_FORMAT) {
        return AG_STATUS_FORMAT;
    }
    if (read(ctx, 0, header, AG_CHECKPOINT_HEADER) != 0) {
        return AG_STATUS_IO;
    }
    if (header[2] != graph_id || header[5] != bytes ||
        header[7] != ag_crc32(0, header, AG_CHECKPOINT_HEADER - 4u)) {
        return AG_STATUS_CHECKPOINT;
    }
    if (program != AG_ANY_PROGRAM && header[3] != program) {
        return AG_STATUS_PROGRAM;
    }
    for (uint32_t at = 0; at < bytes; at += (uint32_t)sizeof chunk) {
        uint32_t left = bytes - at;
        uint32_t size = left < (uint32_t)sizeof chunk ? left : (uint32_t)sizeof chunk;
        if (read(ctx, AG_CHECKPOINT_HEADER + at, chunk, size) != 0) {
            return AG_STATUS_IO;
        }
        crc = ag_crc32(crc, chunk, size);
    }
    if (crc != header[6]) {
        return AG_STATUS_CHECKPOINT;
    }
    uint32_t offset = AG_CHECKPOINT_HEADER;
    for (uint32_t i = 0; i < count; i++) {
        if (read(ctx, offset, parts[i].at, parts[i].bytes) != 0) {
            return AG_STATUS_IO;
        }
        offset += parts[i].bytes;
    }
    return AG_STATUS_OK;
}

/* The same for a state in one part. */
static inline int ag_checkpoint_save(const void *state, uint32_t bytes, uint32_t graph_id, uint32_t program,
                                     ag_write_fn *write, void *ctx) {
    const ag_part part = {(void *)(uintptr_t)state, bytes};
    return ag_checkpoint_save_parts(&part, 1, graph_id, program, write, ctx);
}

static inline int ag_checkpoint_load(void *state, uint32_t bytes, uint32_t graph_id, uint32_t program,
                                     ag_read_fn *read, void *ctx) {
    const ag_part part = {state, bytes};
    return ag_checkpoint_load_parts(&part, 1, graph_id, program, read, ctx);
}

#endif
