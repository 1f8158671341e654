/* The serial port of the link: bytes are received by interrupt, whatever the program does. On a computer it
 * is standard input and output. */
#ifndef AG_UART_H
#define AG_UART_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begin to receive. Nothing else may read from the port afterwards; texts still go out where there is no
 * other console. */
void ag_uart_start(void);

/* Wait for bytes; up to `bytes` of those that have come. Returns how many, 0 only at the end of the input,
 * which a board does not have. */
uint32_t ag_uart_read(uint8_t *data, uint32_t bytes);

/* The same without waiting: 0 where nothing has come. */
uint32_t ag_uart_poll(uint8_t *data, uint32_t bytes);

/* Send all, then return. */
void ag_uart_write(const uint8_t *data, uint32_t bytes);

/* Bytes lost since the start because nobody took them in time. */
uint32_t ag_uart_overruns(void);

#ifdef __cplusplus
}
#endif
#endif
