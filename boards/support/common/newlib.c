/* errno of newlib's libm. The errno of newlib's libc would link the state of stdio, and since newlib 4.5
 * malloc. */
int *ag_errno(void) __asm__("__errno");

int *ag_errno(void) {
    static int value;
    return &value;
}
