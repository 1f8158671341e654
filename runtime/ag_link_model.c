/* The state of a model, in one part or in several, as bytes one after the other. */
#include "ag_link_model.h"

#include <stddef.h>

uint8_t *ag_state_at(const ag_link_model *m, uint8_t *memory, uint32_t offset, uint32_t *bytes) {
    const ag_part whole = {memory + m->state_offset, m->state_bytes};
    const ag_part *part = m->state == NULL ? &whole : m->state;
    const ag_part *const last = m->state == NULL ? &whole : m->state + m->state_parts - 1;
    while (part < last && offset >= part->bytes) {
        offset -= part->bytes;
        part++;
    }
    *bytes = *bytes < part->bytes - offset ? *bytes : part->bytes - offset;
    return (uint8_t *)part->at + offset;
}

uint32_t ag_state_sum(const ag_link_model *m, uint8_t *memory, uint32_t sum, uint32_t offset,
                      uint32_t bytes) {
    for (uint32_t done = 0, some; done < bytes; done += some) {
        some = bytes - done;
        const uint8_t *data = ag_state_at(m, memory, offset + done, &some);
        sum = ag_crc32(sum, data, some);
    }
    return sum;
}
