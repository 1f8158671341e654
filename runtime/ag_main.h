/* What main programs have in common: their board's name, giving up with a message, the memory used. */
#ifndef AG_MAIN_H
#define AG_MAIN_H

#ifdef __cplusplus
extern "C" {
#endif

/* The board's name as board= gives it. */
const char *ag_board_name(void);

/* Print "error: DOING: MEANING (status S)" and end the program with exit code 1 when `status` is negative. */
void ag_require(const char *doing, int status, const char *meaning);

/* Print what the program takes of flash, RAM and stack; nothing on a computer, which has no such limits. */
void ag_print_memory(void);

#ifdef __cplusplus
}
#endif
#endif
