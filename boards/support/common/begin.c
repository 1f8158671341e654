/* From the core's start-up code to main. */
#include "ag_machine.h"
#include "ag_startup.h"

#include "ag_system.h"

typedef void (*function)(void);

extern uint32_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint32_t __ram1_origin[], __ram1_end[], __ram2_origin[], __ram2_end[], __ram3_origin[], __ram3_end[];
extern const uint32_t __data_load[];
extern const function __init_array_start[], __init_array_end[];

int main(void);

static void clear(uint32_t *from, const uint32_t *end) {
    for (uint32_t *to = from; to < end; to++) {
        *to = 0;
    }
}

void ag_begin(void) {
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from++;
    }
    clear(__bss_start, __bss_end);
    clear(__ram1_origin, __ram1_end); /* empty where the board has no further regions */
    clear(__ram2_origin, __ram2_end);
    clear(__ram3_origin, __ram3_end);
    ag_machine_init();
    ag_system_start();
    for (const function *f = __init_array_start; f < __init_array_end; f++) {
        (*f)();
    }
    ag_system_exit(main());
}
