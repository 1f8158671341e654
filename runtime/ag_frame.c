#include "ag_frame.h"

#include "ag_crc32.h"

/* Consistent overhead byte stuffing (COBS): each run of non-zero bytes is preceded by its length plus 1. */
uint32_t ag_frame_decode(uint8_t *data, uint32_t bytes) {
    uint32_t src = 0, dst = 0;
    while (src < bytes) {
        const uint32_t code = data[src++];
        if (code == 0 || code - 1 > bytes - src) {
            return 0;
        }
        for (uint32_t i = 1; i < code; i++) {
            data[dst++] = data[src++];
        }
        if (code < 255 && src < bytes) {
            data[dst++] = 0;
        }
    }
    return dst;
}

/* `bytes` is at most AG_LINK_FRAME, so no run exceeds the range of a code. */
uint32_t ag_frame_encode(uint8_t *out, const uint8_t *data, uint32_t bytes) {
    uint32_t code = 0, dst = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        if (data[i] == 0) {
            out[code] = (uint8_t)(dst - code);
            code = dst++;
        } else {
            out[dst++] = data[i];
        }
    }
    out[code] = (uint8_t)(dst - code);
    out[dst++] = 0;
    return dst;
}

uint32_t ag_frame_seal(uint8_t *frame, uint32_t bytes) {
    ag_put32(frame + AG_LINK_HEADER + bytes, ag_crc32(0, frame, AG_LINK_HEADER + bytes));
    return AG_LINK_HEADER + bytes + 4;
}

void ag_frame_fill(uint8_t *frame, uint32_t request, int status, uint32_t session, uint32_t sequence) {
    frame[AG_FRAME_REQUEST] = (uint8_t)request;
    frame[AG_FRAME_STATUS] = (uint8_t)status;
    ag_put16(frame + AG_FRAME_SESSION, session);
    ag_put32(frame + AG_FRAME_SEQUENCE, sequence);
}

bool ag_frame_is_good(const uint8_t *frame, uint32_t bytes) {
    return bytes >= AG_LINK_HEADER + 4 && bytes <= AG_LINK_FRAME &&
           ag_get32(frame + bytes - 4) == ag_crc32(0, frame, bytes - 4);
}
