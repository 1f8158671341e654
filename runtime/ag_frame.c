#include "ag_frame.h"

#include "ag_crc32.h"

/* Consistent overhead byte stuffing: each run of bytes that are not 0 stands behind its length plus 1. */
uint32_t ag_frame_decode(uint8_t *data, uint32_t bytes) {
    uint32_t from = 0, to = 0;
    while (from < bytes) {
        const uint32_t code = data[from++];
        if (code == 0 || code - 1 > bytes - from) {
            return 0;
        }
        for (uint32_t i = 1; i < code; i++) {
            data[to++] = data[from++];
        }
        if (code < 255 && from < bytes) {
            data[to++] = 0;
        }
    }
    return to;
}

/* `bytes` of at most AG_LINK_FRAME, so no run is longer than a code can say. */
uint32_t ag_frame_encode(uint8_t *out, const uint8_t *data, uint32_t bytes) {
    uint32_t code = 0, to = 1;
    for (uint32_t i = 0; i < bytes; i++) {
        if (data[i] == 0) {
            out[code] = (uint8_t)(to - code);
            code = to++;
        } else {
            out[to++] = data[i];
        }
    }
    out[code] = (uint8_t)(to - code);
    out[to++] = 0;
    return to;
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
