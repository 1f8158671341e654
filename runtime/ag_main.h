/* Shared by the main programs: the board's name, exit with a message, memory usage. */
#ifndef AG_MAIN_H
#define AG_MAIN_H

#ifdef __cplusplus
extern "C" {
#endif

/* The board's name as given by board=. */
const char *ag_board_name(void);

/* Prints "error: DOING: MEANING (status S)" and exits with code 1 when `status` is negative. */
void ag_require(const char *doing, int status, const char *meaning);

/* Prints the program's use of flash, RAM and stack; nothing on the host, which has no such limits. */
void ag_print_memory(void);

#ifdef __cplusplus
}
#endif
#endif
