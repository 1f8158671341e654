/* The C library functions that compilers call implicitly: Debian has no bare-metal C library for AArch64.
 * libm is built for Linux, and needs errno. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Keeps the compiler from replacing these loops by calls of the functions themselves. */
#if defined __clang__
#define LOOPS __attribute__((no_builtin("memcpy", "memmove", "memset", "memcmp", "strlen")))
#else
#define LOOPS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

__thread int errno;

LOOPS void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    uint8_t *t = to;
    const uint8_t *f = from;
    for (; bytes >= sizeof(word); bytes -= sizeof(word), t += sizeof(word), f += sizeof(word)) {
        *(word *)(void *)t = *(const word *)(const void *)f;
    }
    for (; bytes > 0; bytes--) {
        *t++ = *f++;
    }
    return to;
}

LOOPS void *memmove(void *to, const void *from, size_t bytes) {
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t - (uintptr_t)f >=
        bytes) { /* copying forward never overwrites bytes that are still to be read */
        return memcpy(to, from, bytes);
    }
    while (bytes > 0) {
        bytes--;
        t[bytes] = f[bytes];
    }
    return to;
}

LOOPS void *memset(void *to, int value, size_t bytes) {
    uint8_t *t = to;
    const uint64_t eight = (uint8_t)value * 0x0101010101010101u;
    for (; bytes >= sizeof(word); bytes -= sizeof(word), t += sizeof(word)) {
        *(word *)(void *)t = eight;
    }
    for (; bytes > 0; bytes--) {
        *t++ = (uint8_t)value;
    }
    return to;
}

LOOPS int memcmp(const void *a, const void *b, size_t bytes) {
    const uint8_t *x = a, *y = b;
    for (size_t i = 0; i < bytes; i++) {
        if (x[i] != y[i]) {
            return x[i] - y[i];
        }
    }
    return 0;
}

LOOPS size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != 0) {
        length++;
    }
    return length;
}
