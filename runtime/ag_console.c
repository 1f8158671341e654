#include "ag_console.h"

#include "ag_system.h"

#include <string.h>

static char line[120];
static uint32_t buffered;

void ag_print_flush(void) {
    const uint32_t bytes = buffered;
    buffered = 0; /* before the write: a fault inside it flushes too */
    if (bytes > 0) {
        ag_system_write(line, bytes);
    }
}

static void put(char c) {
    line[buffered++] = c;
    if (c == '\n' || buffered == sizeof line) {
        ag_print_flush();
    }
}

static void pad(int32_t columns) {
    for (int32_t i = 0; i < columns; i++) {
        put(' ');
    }
}

void ag_print(const char *text) {
    while (*text != '\0') {
        put(*text++);
    }
}

void ag_print_left(const char *text, int32_t width) {
    ag_print(text);
    pad(width - (int32_t)strlen(text));
}

void ag_print_right(const char *text, int32_t width) {
    pad(width - (int32_t)strlen(text));
    ag_print(text);
}

static void print_digits(uint32_t x, int negative, int32_t group, int32_t width) {
    char text[16];
    char *p = text + sizeof text - 1;
    *p = '\0';
    int32_t count = 0;
    do {
        if (group > 0 && count > 0 && count % group == 0) {
            *--p = ',';
        }
        *--p = (char)('0' + x % 10u);
        x /= 10u;
        count++;
    } while (x > 0);
    if (negative) {
        *--p = '-';
    }
    ag_print_right(p, width);
}

void ag_print_u32(uint32_t x, int32_t width) {
    print_digits(x, 0, 0, width);
}

void ag_print_i32(int32_t x, int32_t width) {
    print_digits(x < 0 ? 0u - (uint32_t)x : (uint32_t)x, x < 0, 0, width);
}

void ag_print_grouped(uint32_t x, int32_t width) {
    print_digits(x, 0, 3, width);
}

void ag_print_hex(uint32_t x) {
    for (int32_t shift = 28; shift >= 0; shift -= 4) {
        put("0123456789abcdef"[(x >> shift) & 15u]);
    }
}

void ag_print_f32(float x, int32_t width, int32_t decimals) {
    char text[AG_FORMAT_F32_BYTES];
    ag_format_f32(text, x, decimals);
    ag_print_right(text, width);
}

void ag_print_e32(float x, int32_t width, int32_t decimals) {
    char text[AG_FORMAT_F32_BYTES];
    ag_format_e32(text, x, decimals);
    ag_print_right(text, width);
}
