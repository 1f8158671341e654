#include "ag_main.h"

#include "ag_console.h"
#include "ag_system.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifndef AG_BOARD
#define AG_BOARD an unnamed board
#endif

const char *ag_board_name(void) {
    return TEXT(AG_BOARD);
}

void ag_require(const char *doing, int status, const char *meaning) {
    if (status >= 0) {
        return;
    }
    ag_print("error: ");
    ag_print(doing);
    ag_print(": ");
    ag_print(meaning);
    ag_print(" (status ");
    ag_print_i32(status, 0);
    ag_print(")\n");
    ag_system_exit(1);
}

static void print_use(const char *name, uint32_t used, uint32_t bytes, const char *note) {
    ag_print_left(name, 8);
    ag_print_grouped(used, 9);
    ag_print(" of ");
    ag_print_grouped(bytes, 9);
    ag_print(" bytes");
    ag_print_f32(100.0f * (float)used / (float)bytes, 7, 1);
    ag_print(" %");
    ag_print(note);
    ag_print("\n");
}

void ag_print_memory(void) {
    const ag_memory m = ag_system_memory();
    if (m.ram_bytes > 0) {
        ag_print("\n");
        print_use("flash", m.flash_used, m.flash_bytes, "");
        print_use("RAM", m.ram_used, m.ram_bytes, "   the stack's reserve in it");
        print_use("stack", m.stack_used, m.stack_bytes, "   at its highest");
    }
}
