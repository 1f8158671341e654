/* A line with transmission errors between board and host, for link_fuzz.c. */
#ifndef LINK_FUZZ_LINE_H
#define LINK_FUZZ_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { REPLAYS = 16, LONGEST = 260 };

/* The source of errors: the fuzzer's bytes, then zeros, which mean no error. */
typedef struct source {
    const uint8_t *data;
    size_t left;
} source;

static uint32_t next_random(source *s) {
    if (s->left == 0) {
        return 0;
    }
    s->left--;
    return *s->data++;
}

/* Bytes in transit, and the last frames for replays. */
typedef struct line {
    uint8_t replay[REPLAYS][LONGEST];
    uint32_t replay_bytes[REPLAYS], count;
    uint8_t delayed[LONGEST]; /* a delayed frame */
    uint32_t delayed_bytes;
    uint8_t out[16 * LONGEST];
    uint32_t out_bytes;
} line;

static unsigned long frames; /* sent */

static void put(line *l, const uint8_t *data, uint32_t bytes) {
    if (bytes <= sizeof l->out - l->out_bytes) {
        memcpy(l->out + l->out_bytes, data, bytes);
        l->out_bytes += bytes;
    }
}

/* Transmits a frame, possibly with an error. */
static void transmit(line *l, source *s, const uint8_t *data, uint32_t bytes) {
    uint8_t copy[LONGEST];
    const uint32_t error = next_random(s);
    frames++;
    memcpy(copy, data, bytes);
    memcpy(l->replay[l->count % REPLAYS], data, bytes);
    l->replay_bytes[l->count++ % REPLAYS] = bytes;
    switch (error % 12) {
    case 1: /* lost */
        return;
    case 2: /* duplicated */
        put(l, copy, bytes);
        put(l, copy, bytes);
        break;
    case 3: /* truncated: its end is missing, possibly with the terminating 0 */
        put(l, copy, next_random(s) % bytes);
        break;
    case 4: /* its start is missing */
    {
        const uint32_t cut = next_random(s) % bytes;
        put(l, copy + cut, bytes - cut);
        break;
    }
    case 5: /* bit errors */
        for (uint32_t n = 1 + next_random(s) % 4; n > 0; n--) {
            copy[next_random(s) % bytes] ^= (uint8_t)(1u << next_random(s) % 8);
        }
        put(l, copy, bytes);
        break;
    case 6: /* corrupted bytes */
        for (uint32_t n = 1 + next_random(s) % 4; n > 0; n--) {
            copy[next_random(s) % bytes] = (uint8_t)next_random(s);
        }
        put(l, copy, bytes);
        break;
    case 7: /* an old frame is replayed before it */
    case 8: /* or after it */
    {
        const uint32_t old = next_random(s) % (l->count < REPLAYS ? l->count : REPLAYS);
        if (error % 12 == 8) {
            put(l, copy, bytes);
        }
        put(l, l->replay[old], l->replay_bytes[old]);
        if (error % 12 == 7) {
            put(l, copy, bytes);
        }
        break;
    }
    case 9: /* noise before it */
        for (uint32_t n = next_random(s) % 100; n > 0; n--) {
            const uint8_t noise = (uint8_t)next_random(s);
            put(l, &noise, 1);
        }
        put(l, copy, bytes);
        break;
    case 10: /* delayed: the next one overtakes it */
        memcpy(l->delayed, copy, bytes);
        l->delayed_bytes = bytes;
        return;
    case 11: /* the terminating 0 is missing */
        put(l, copy, bytes - 1);
        break;
    default:
        put(l, copy, bytes);
        break;
    }
    put(l, l->delayed, l->delayed_bytes);
    l->delayed_bytes = 0;
}

#endif
