/* Frames of the link: little-endian numbers, checksums, encoding (docs/link.md). */
#ifndef AG_FRAME_H
#define AG_FRAME_H

#include "ag_link.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets of the fields of a frame. The last four bytes are the CRC-32 of all before. */
enum {
    AG_FRAME_REQUEST = 0,
    AG_FRAME_STATUS = 1,
    AG_FRAME_SESSION = 2,
    AG_FRAME_SEQUENCE = 4,
    AG_FRAME_PAYLOAD = 8
};

static inline uint32_t ag_get16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t ag_get32(const uint8_t *p) {
    return ag_get16(p) | ag_get16(p + 2) << 16;
}

static inline void ag_put16(uint8_t *p, uint32_t x) {
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}

static inline void ag_put32(uint8_t *p, uint32_t x) {
    ag_put16(p, x);
    ag_put16(p + 2, x >> 16);
}

static inline float ag_get_f32(const uint8_t *p) {
    const uint32_t bits = ag_get32(p);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void ag_put_f32(uint8_t *p, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    ag_put32(p, bits);
}

/* Decodes in place; returns the length of the frame, or 0 when the encoding is invalid. */
uint32_t ag_frame_decode(uint8_t *data, uint32_t bytes);

/* Encodes a frame of at most AG_LINK_FRAME bytes, including the terminating 0; returns the length. */
uint32_t ag_frame_encode(uint8_t *out, const uint8_t *data, uint32_t bytes);

/* Writes the header. */
void ag_frame_fill(uint8_t *frame, uint32_t request, int status, uint32_t session, uint32_t sequence);

/* Appends the checksum to a frame with a payload of `bytes` bytes; returns its length. */
uint32_t ag_frame_seal(uint8_t *frame, uint32_t bytes);

/* Whether a frame of `bytes` bytes has a valid length and checksum. */
bool ag_frame_is_good(const uint8_t *frame, uint32_t bytes);

#ifdef __cplusplus
}
#endif
#endif
