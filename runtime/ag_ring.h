/* A lock-free single-producer single-consumer ring buffer, from an interrupt handler to the program. Bytes
 * for which there is no room are counted and dropped. */
#ifndef AG_RING_H
#define AG_RING_H

#include <stdint.h>

/* A power of two. The host of the link sends no more than this before it waits for a reply. At 921,600 baud 1
 * KB covers 11 ms, with the delay of a serial adapter. */
#ifndef AG_RING_BYTES
#define AG_RING_BYTES 1024u
#endif

typedef struct ag_ring {
    volatile uint32_t written, read; /* counted, modulo 2^32 */
    volatile uint32_t overruns;
    volatile uint8_t byte[AG_RING_BYTES];
} ag_ring;

/* Called by the interrupt handler. */
static inline void ag_ring_put(ag_ring *r, uint8_t byte) {
    const uint32_t at = r->written;
    if (at - r->read >= AG_RING_BYTES) {
        r->overruns++;
        return;
    }
    r->byte[at % AG_RING_BYTES] = byte;
    r->written = at + 1u;
}

/* Called by the program: reads at most `bytes` of the available bytes. Returns how many. */
static inline uint32_t ag_ring_take(ag_ring *r, uint8_t *data, uint32_t bytes) {
    uint32_t at = r->read, count = r->written - at;
    count = count < bytes ? count : bytes;
    for (uint32_t i = 0; i < count; i++, at++) {
        data[i] = r->byte[at % AG_RING_BYTES];
    }
    r->read = at;
    return count;
}

#endif
