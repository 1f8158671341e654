#include "ag_samples.h"

#include "ag_crc32.h"
#include "ag_system.h"

#include <string.h>

enum { HEADER = 48, SCALED_HEADER = 56, LARGEST_ZERO = 1 << 23 };

#if defined(__GNUC__)
#pragma weak ag_samples_in_flash
#pragma weak ag_samples_in_flash_bytes
#endif

static uint32_t word(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static int read_file(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    return ag_system_read(((const ag_samples *)ctx)->handle, offset, data, bytes);
}

static int read_flash(void *ctx, uint32_t offset, void *data, uint32_t bytes) {
    (void)ctx;
    if (offset > ag_samples_in_flash_bytes || bytes > ag_samples_in_flash_bytes - offset) {
        return -1;
    }
    memcpy(data, ag_samples_in_flash + offset, bytes);
    return 0;
}

int ag_samples_open(ag_samples *s) {
    s->handle = ag_system_open("samples.bin");
    if (s->handle >= 0) {
        const int status = ag_samples_open_source(s, read_file, s);
        if (status != AG_SAMPLES_OK) {
            ag_samples_close(s);
        }
        return status;
    }
    if (&ag_samples_in_flash_bytes != NULL) {
        return ag_samples_open_source(s, read_flash, NULL);
    }
    return AG_SAMPLES_ERR_NONE;
}

void ag_samples_close(ag_samples *s) {
    if (s->handle >= 0) {
        ag_system_close(s->handle);
        s->handle = -1;
    }
}

int ag_samples_open_source(ag_samples *s, ag_read_fn *read, void *ctx) {
    uint8_t header[SCALED_HEADER];
    if (read(ctx, 0, header, HEADER) != 0) {
        return AG_SAMPLES_ERR_READ;
    }
    s->header = word(header + 8);
    if (memcmp(header, "AGS1", 4) != 0 || word(header + 4) != 1 ||
        (s->header != HEADER && s->header != SCALED_HEADER)) {
        return AG_SAMPLES_ERR_HEADER;
    }
    if (s->header > HEADER && read(ctx, HEADER, header + HEADER, s->header - HEADER) != 0) {
        return AG_SAMPLES_ERR_READ;
    }
    if (word(header + s->header - 4) != ag_crc32(0, header, s->header - 4)) {
        return AG_SAMPLES_ERR_HEADER;
    }
    s->divisor = 255.0f;
    s->zero = 0;
    if (s->header == SCALED_HEADER) {
        const uint32_t divisor = word(header + 44), zero = word(header + 48);
        memcpy(&s->divisor, &divisor, sizeof divisor);
        memcpy(&s->zero, &zero, sizeof zero);
        if (!(s->divisor > 0.0f && s->divisor - s->divisor == 0.0f) || s->zero > LARGEST_ZERO ||
            s->zero < -LARGEST_ZERO) {
            return AG_SAMPLES_ERR_HEADER;
        }
    }
    s->record_bytes = word(header + 12);
    s->input_bytes = word(header + 16);
    s->label_bytes = word(header + 20);
    s->train = word(header + 24);
    s->test = word(header + 28);
    s->epochs = word(header + 32);
    s->crc = word(header + 40);
    s->next = 0;
    s->read = read;
    s->ctx = ctx;
    if (s->record_bytes == 0 || s->input_bytes > s->record_bytes ||
        s->label_bytes != s->record_bytes - s->input_bytes || s->test > UINT32_MAX - s->train ||
        s->train + s->test > (UINT32_MAX - SCALED_HEADER) / s->record_bytes) {
        return AG_SAMPLES_ERR_HEADER;
    }
    if (s->epochs > AG_SAMPLES_MOST_EPOCHS || (s->train != 0 && s->epochs > UINT32_MAX / s->train)) {
        return AG_SAMPLES_ERR_EPOCHS;
    }
    return AG_SAMPLES_OK;
}

int ag_samples_seek(ag_samples *s, uint32_t index) {
    if (index > s->train + s->test) {
        return AG_SAMPLES_ERR_END;
    }
    s->next = index;
    return AG_SAMPLES_OK;
}

int ag_samples_next(ag_samples *s, uint8_t *record) {
    if (s->next >= s->train + s->test) {
        return AG_SAMPLES_ERR_END;
    }
    if (s->read(s->ctx, s->header + s->next * s->record_bytes, record, s->record_bytes) != 0) {
        return AG_SAMPLES_ERR_READ;
    }
    s->next++;
    return AG_SAMPLES_OK;
}

int ag_samples_part(const ag_samples *s, uint32_t index, uint32_t offset, void *data, uint32_t bytes) {
    if (index >= s->train + s->test || offset > s->record_bytes || bytes > s->record_bytes - offset) {
        return AG_SAMPLES_ERR_END;
    }
    const uint32_t at = s->header + index * s->record_bytes + offset;
    return s->read(s->ctx, at, data, bytes) == 0 ? AG_SAMPLES_OK : AG_SAMPLES_ERR_READ;
}

const char *ag_samples_strstatus(int status) {
    switch (status) {
    case AG_SAMPLES_OK:
        return "ok";
    case AG_SAMPLES_ERR_NONE:
        return "no samples: samples.bin is not in the working folder, and no set is linked into flash";
    case AG_SAMPLES_ERR_READ:
        return "samples end early: make samples.bin again with data.py";
    case AG_SAMPLES_ERR_HEADER:
        return "not a sample set, or a damaged one: make samples.bin again with data.py";
    case AG_SAMPLES_ERR_END:
        return "no record after the last one";
    case AG_SAMPLES_ERR_RECORDS:
        return "the records do not have the header's checksum: make samples.bin again with data.py";
    case AG_SAMPLES_ERR_EPOCHS:
        return "more than 65,535 epochs, or 2^32 steps: make samples.bin again with data.py";
    default:
        return "unknown status";
    }
}
