/* Saves checkpoints to the board's flash file, word by word, until the operation given in cut.bin has
 * started; then prints "cut" and waits to be killed. At its start it prints which checkpoint it loaded. */
#include "ag_console.h"
#include "ag_flash.h"
#include "ag_rng.h"
#include "ag_store.h"
#include "ag_system.h"

#include <string.h>

enum { STATE = 24, SLOTS = 3, SLOT_BYTES = 416 };

static ag_flash file;
static uint32_t state[STATE], operations, limit;

static void begin(void) {
    if (++operations > limit) {
        ag_print("cut\n");
        for (volatile uint32_t spin = 0;; spin++) {
        }
    }
}

static int read_file(void *ctx, uint32_t address, void *data, uint32_t bytes) {
    (void)ctx;
    return file.read(file.ctx, address, data, bytes);
}

static int program(void *ctx, uint32_t address, const void *data, uint32_t bytes) {
    (void)ctx;
    for (uint32_t offset = 0; offset < bytes; offset += 4) {
        begin();
        if (file.program(file.ctx, address + offset, (const uint8_t *)data + offset, 4) != 0) {
            return -1;
        }
    }
    return 0;
}

static int erase(void *ctx, uint32_t address) {
    (void)ctx;
    begin();
    return file.erase(file.ctx, address);
}

static void fill(uint32_t *words, uint32_t steps) {
    for (uint32_t i = 0; i < STATE; i++) {
        words[i] = ag_rand_u32(steps, 0, i);
    }
}

static int save(const void *memory, ag_write_fn *write, void *ctx) {
    return write(ctx, 0, memory, sizeof state);
}

static int load(void *memory, ag_read_fn *read, void *ctx) {
    return read(ctx, 0, memory, sizeof state);
}

static void print_number(const char *what, uint32_t number) {
    ag_print(what);
    ag_print_u32(number, 0);
    ag_print("\n");
}

int main(void) {
    uint32_t expected[STATE];
    const int32_t handle = ag_system_open("cut.bin");
    if (handle < 0 || ag_system_read(handle, 0, &limit, 4) != 0 ||
        ag_flash_file_open(&file, "flash.bin", SLOTS, SLOT_BYTES) != 0) {
        return 1;
    }
    const ag_flash flash = {read_file, program, erase, NULL, SLOTS, SLOT_BYTES};
    ag_checkpoint c = {7, 0, 0, 8, 0};
    const int status = ag_store_load(&flash, &c, load, state);
    fill(expected, c.steps);
    if (status != AG_STORE_OK && status != AG_STORE_ERR_NONE && status != AG_STORE_ERR_DAMAGED) {
        print_number("rejected ", (uint32_t)-status);
    } else if (status == AG_STORE_OK && memcmp(state, expected, sizeof state) != 0) {
        print_number("corrupt ", c.steps);
    } else {
        print_number("loaded ", c.steps);
    }
    for (;;) {
        c.steps++;
        fill(state, c.steps);
        if (ag_store_save(&flash, &c, save, state) != AG_STORE_OK) {
            print_number("failed ", c.steps);
            return 1;
        }
        print_number("saved ", c.steps);
    }
}
