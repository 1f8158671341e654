/* A line between board and host on which accidents happen, for link_fuzz.c. */
#ifndef LINK_FUZZ_LINE_H
#define LINK_FUZZ_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEPT = 16, LONGEST = 160 };

/* What decides on accidents: the fuzzer's bytes, then zeros, which mean none. */
typedef struct source {
    const uint8_t *data;
    size_t left;
} source;

static uint32_t draw(source *s) {
    if (s->left == 0) {
        return 0;
    }
    s->left--;
    return *s->data++;
}

/* Bytes on their way, and the last frames for replays. */
typedef struct line {
    uint8_t kept[KEPT][LONGEST];
    uint32_t kept_bytes[KEPT], count;
    uint8_t held[LONGEST]; /* a frame that is late */
    uint32_t held_bytes;
    uint8_t out[16 * LONGEST];
    uint32_t out_bytes;
} line;

static unsigned long frames; /* that have passed */

static void put(line *l, const uint8_t *data, uint32_t bytes) {
    if (bytes <= sizeof l->out - l->out_bytes) {
        memcpy(l->out + l->out_bytes, data, bytes);
        l->out_bytes += bytes;
    }
}

/* A frame passes, or something happens to it. */
static void pass(line *l, source *s, const uint8_t *data, uint32_t bytes) {
    uint8_t copy[LONGEST];
    const uint32_t accident = draw(s);
    frames++;
    memcpy(copy, data, bytes);
    memcpy(l->kept[l->count % KEPT], data, bytes);
    l->kept_bytes[l->count++ % KEPT] = bytes;
    switch (accident % 12) {
    case 1: /* lost */
        return;
    case 2: /* doubled */
        put(l, copy, bytes);
        put(l, copy, bytes);
        break;
    case 3: /* cut: its end is missing, and with it perhaps the 0 */
        put(l, copy, draw(s) % bytes);
        break;
    case 4: /* its begin is missing */
    {
        const uint32_t cut = draw(s) % bytes;
        put(l, copy + cut, bytes - cut);
        break;
    }
    case 5: /* bits flip */
        for (uint32_t n = 1 + draw(s) % 4; n > 0; n--) {
            copy[draw(s) % bytes] ^= (uint8_t)(1u << draw(s) % 8);
        }
        put(l, copy, bytes);
        break;
    case 6: /* bytes change */
        for (uint32_t n = 1 + draw(s) % 4; n > 0; n--) {
            copy[draw(s) % bytes] = (uint8_t)draw(s);
        }
        put(l, copy, bytes);
        break;
    case 7: /* an old frame comes first */
    case 8: /* or later */
    {
        const uint32_t old = draw(s) % (l->count < KEPT ? l->count : KEPT);
        if (accident % 12 == 8) {
            put(l, copy, bytes);
        }
        put(l, l->kept[old], l->kept_bytes[old]);
        if (accident % 12 == 7) {
            put(l, copy, bytes);
        }
        break;
    }
    case 9: /* noise before it */
        for (uint32_t n = draw(s) % 100; n > 0; n--) {
            const uint8_t noise = (uint8_t)draw(s);
            put(l, &noise, 1);
        }
        put(l, copy, bytes);
        break;
    case 10: /* late: the next one overtakes it */
        memcpy(l->held, copy, bytes);
        l->held_bytes = bytes;
        return;
    case 11: /* the zero behind it is missing */
        put(l, copy, bytes - 1);
        break;
    default:
        put(l, copy, bytes);
        break;
    }
    put(l, l->held, l->held_bytes);
    l->held_bytes = 0;
}

#endif
