/* From the core's start-up code to main. */
#include "ag_machine.h"
#include "ag_startup.h"

#include "ag_system.h"

typedef void (*function)(void);

extern uint32_t __data_start[], __data_end[], __bss_start[], __bss_end[];
extern const uint32_t __data_load[];
extern const function __init_array_start[], __init_array_end[];

int main(void);

void ag_begin(void) {
    const uint32_t *from = __data_load;
    for (uint32_t *to = __data_start; to < __data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = __bss_start; to < __bss_end; to++) {
        *to = 0;
    }
    ag_machine_init();
    ag_system_start();
    for (const function *f = __init_array_start; f < __init_array_end; f++) {
        (*f)();
    }
    ag_system_exit(main());
}
