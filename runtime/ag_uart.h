/* The serial port of the link: bytes are received by interrupt while the program runs. On the host it is
 * standard input and output. */
#ifndef AG_UART_H
#define AG_UART_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts receiving. Nothing else may read from the port afterwards; text is still sent to it where there is
 * no other console. */
void ag_uart_start(void);

/* Waits for data and reads up to `bytes` available bytes. Returns how many, 0 only at the end of the input,
 * which a board does not have. */
uint32_t ag_uart_read(uint8_t *data, uint32_t bytes);

/* The same without waiting: 0 where nothing is available. */
uint32_t ag_uart_poll(uint8_t *data, uint32_t bytes);

/* Sends all bytes, then returns. */
void ag_uart_write(const uint8_t *data, uint32_t bytes);

/* Bytes that are buffered while the program does not read. */
uint32_t ag_uart_room(void);

/* Bytes lost since the start because the buffer was full. */
uint32_t ag_uart_overruns(void);

#ifdef __cplusplus
}
#endif
#endif
