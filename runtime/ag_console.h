/* Text output without stdio and without a heap: strings, integers, and floats with all digits correct. */
#ifndef AG_CONSOLE_H
#define AG_CONSOLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AG_FORMAT_F32_BYTES = 64
}; /* buffer size for ag_format_f32 and ag_format_e32, including the terminating 0 */

/* x with `decimals` (0..9) digits after the point, as printf("%.*f") prints it: exact, ties to even. "inf",
 * "-inf", "nan" for other values. Returns the length. */
int32_t ag_format_f32(char *out, float x, int32_t decimals);

/* x as d.ddde+XX, as printf("%.*e") prints it; 8 decimals (0..9) identify every float. Returns the length. */
int32_t ag_format_e32(char *out, float x, int32_t decimals);

/* Numbers and ag_print_right are right-aligned in `width` columns, ag_print_left is left-aligned; 0: as wide
 * as needed. Text is buffered until the end of a line, and written by ag_print_flush. */
void ag_print(const char *text);
void ag_print_left(const char *text, int32_t width);
void ag_print_right(const char *text, int32_t width);
void ag_print_u32(uint32_t x, int32_t width);
void ag_print_i32(int32_t x, int32_t width);
void ag_print_grouped(uint32_t x, int32_t width); /* 8,000 */
void ag_print_hex(uint32_t x);                    /* eight digits */
void ag_print_f32(float x, int32_t width, int32_t decimals);
void ag_print_e32(float x, int32_t width, int32_t decimals);
void ag_print_flush(void);

#ifdef __cplusplus
}
#endif
#endif
