/* Products of 8-bit integers with Helium; the micro-kernel is in microkernel_s8.c. */
#include "tiles/requantized.h"

#define AG_WINDOWS 1
enum { AG_ROWS = 32 };

/* Of at least one byte. */
ALWAYS_INLINE void ag_copy(int8_t *to, const int8_t *from, size_t count) {
    __asm__ volatile("dlstp.8 lr, %[count]\n"
                     "1: vldrb.8 q0, [%[from]], #16\n"
                     "vstrb.8 q0, [%[to]], #16\n"
                     "letp lr, 1b\n"
                     : [to] "+r"(to), [from] "+r"(from)
                     : [count] "r"(count)
                     : "s0", "s1", "s2", "s3", "lr", "memory");
}

/* sums = bias + the products. */
void ag_dots_s8_mve(int32_t *sums, const int32_t *bias, const int8_t *window, const int8_t *w, int32_t k,
                    int32_t rows);
#define ag_dots ag_dots_s8_mve

#include "tiles/products_s8.c"
