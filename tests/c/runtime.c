/* Functions of the runtime, for ctypes. */
#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_samples.h"

#include <string.h>

uint32_t crc(uint32_t start, const void *data, uint32_t bytes);
int32_t format_f32(char *out, uint32_t bits, int32_t decimals);
int32_t format_e32(char *out, uint32_t bits, int32_t decimals);
void print_all(void);
int read_samples(uint32_t *header, uint8_t *records, uint32_t room);

uint32_t crc(uint32_t start, const void *data, uint32_t bytes) {
    return ag_crc32(start, data, bytes);
}

static float value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

int32_t format_f32(char *out, uint32_t bits, int32_t decimals) {
    return ag_format_f32(out, value(bits), decimals);
}

int32_t format_e32(char *out, uint32_t bits, int32_t decimals) {
    return ag_format_e32(out, value(bits), decimals);
}

void print_all(void) {
    ag_print("text|");
    ag_print_left("ab", 4);
    ag_print("|");
    ag_print_right("ab", 4);
    ag_print("|");
    ag_print_u32(4294967295u, 12);
    ag_print("|");
    ag_print_i32(INT32_MIN, 0);
    ag_print("|");
    ag_print_i32(-7, 4);
    ag_print("|");
    ag_print_grouped(1234567890u, 0);
    ag_print("|");
    ag_print_grouped(999u, 5);
    ag_print("|");
    ag_print_hex(0xbeefu);
    ag_print("|");
    ag_print_f32(-0.5f, 8, 2);
    ag_print("|");
    ag_print_e32(12345.0f, 10, 2);
    ag_print("\n");
    for (int32_t i = 0; i < 300; i++) { /* longer than the line buffer */
        ag_print("x");
    }
    ag_print_flush();
}

int read_samples(uint32_t *header, uint8_t *records, uint32_t room) {
    ag_samples s;
    int status = ag_samples_open(&s);
    if (status != 0) {
        return status;
    }
    header[0] = s.record_bytes;
    header[1] = s.input_bytes;
    header[2] = s.label_bytes;
    header[3] = s.train;
    header[4] = s.test;
    header[5] = s.epochs;
    header[6] = s.crc;
    if ((s.train + s.test) * s.record_bytes > room) {
        return 1;
    }
    for (uint32_t i = 0; i < s.train + s.test; i++) {
        status = ag_samples_next(&s, records + i * s.record_bytes);
        if (status != 0) {
            return status;
        }
    }
    uint8_t again[64];
    if (ag_samples_next(&s, again) != AG_SAMPLES_ERR_END || ag_samples_seek(&s, 1) != 0 ||
        ag_samples_next(&s, again) != 0 || memcmp(again, records + s.record_bytes, s.record_bytes) != 0 ||
        ag_samples_seek(&s, s.train + s.test + 1) != AG_SAMPLES_ERR_END) {
        return 2;
    }
    ag_samples_close(&s);
    return 0;
}
