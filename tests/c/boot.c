/* Firmware that prints hello, runs the action selected by MODE, and exits with 7. */
#include "ag_console.h"
#include "ag_crc32.h"
#include "ag_samples.h"
#include "ag_system.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef MODE
#define MODE 0
#endif
#ifndef ADDRESS
#define ADDRESS 0
#endif

enum { HELLO, WRITE, OVERFLOW, HEAP, UNDEFINED, STREAM, STACK, READ, LIBM, RANDOM };

int descend(const volatile uint32_t *above, uint32_t n);

static volatile uint32_t initialised = 0x12345678u;
static volatile uint32_t zeroed;
static volatile float three = 3.0f;
static void *volatile heap;

int descend(const volatile uint32_t *above, uint32_t n) {
    volatile uint32_t here[25];
    for (uint32_t i = 0; i < 25; i++) {
        here[i] = above[i] + n;
    }
    return n == 0 ? 0 : descend(here, n - 1) + (int)(here[3] & 1u);
}

static void stream(void) {
    ag_samples s;
    uint8_t record[64];
    uint32_t crc = 0;
    int status = ag_samples_open(&s);
    if (status < 0) {
        ag_print(ag_samples_strstatus(status));
        ag_print("\n");
        ag_system_exit(1);
    }
    for (uint32_t i = 0; i < s.train + s.test; i++) {
        if (ag_samples_next(&s, record) < 0) {
            ag_system_exit(2);
        }
        crc = ag_crc32(crc, record, s.record_bytes);
    }
    if (ag_samples_seek(&s, 1) < 0 || ag_samples_next(&s, record) < 0) {
        ag_system_exit(3);
    }
    ag_print("records ");
    ag_print_hex(crc);
    ag_print(" header ");
    ag_print_hex(s.crc);
    ag_print(" second ");
    ag_print_u32(record[0], 0);
    ag_print("\n");
    ag_samples_close(&s);
}

int main(void) {
    const volatile uint32_t zeros[25] = {0};
    ag_print("hello ");
    ag_print_hex(initialised + zeroed);
    ag_print_f32(1.0f / three, 8, 5);
    ag_print("\n");
    switch (MODE) {
    case WRITE:
        *(volatile uint32_t *)ADDRESS = 1;
        break;
    case READ:
        initialised = *(volatile uint32_t *)ADDRESS;
        break;
    case OVERFLOW:
        return descend(zeros, 1000000u);
    case HEAP:
        heap = malloc(16);
        break;
    case UNDEFINED:
        __asm__ volatile("udf #0");
        break;
    case LIBM:
        three = powf(three, three) + sinf(three) + sqrtf(three) + logf(three);
        break;
    case STREAM:
        stream();
        break;
    case RANDOM: {
        uint32_t word = 0;
        ag_print_i32(ag_system_random(&word, sizeof word), 0);
        ag_print(" ");
        ag_print_hex(word);
        ag_print("\n");
        break;
    }
    case STACK: {
        const ag_memory before = ag_system_memory();
        (void)descend(zeros, 30u);
        const ag_memory after = ag_system_memory();
        const uint32_t numbers[5] = {before.stack_used, after.stack_used, after.stack_bytes, after.ram_used,
                                     after.flash_used};
        for (uint32_t i = 0; i < 5; i++) {
            ag_print_u32(numbers[i], 0);
            ag_print(i < 4 ? " " : "\n");
        }
        break;
    }
    default:
        break;
    }
    ag_print("end\n");
    return 7;
}
