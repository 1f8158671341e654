/* CRC-32 as in IEEE 802.3, gzip and zlib: reflected polynomial 0xEDB88320. Can be chained as in zlib:
 * ag_crc32(ag_crc32(0, a, n), b, m) is the CRC of a followed by b. A table of 16 words, four bits per step.
 */
#ifndef AG_CRC32_H
#define AG_CRC32_H

#include <stdint.h>

static inline uint32_t ag_crc32(uint32_t crc, const void *data, uint32_t bytes) {
    static const uint32_t table[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
        0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
        0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    const uint8_t *p = (const uint8_t *)data;
    crc = ~crc;
    for (uint32_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

#endif
