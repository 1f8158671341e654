/* Defaults for the functions of ag_system.h and ag_flash.h that a port may leave out: there are no files, no
 * flash for checkpoints, no measure of memory or time, and no source of random numbers. A function of the
 * same name in the program replaces a default; a function in a library is found only if the program needs
 * another function of the same file. */
#include "ag_flash.h"
#include "ag_system.h"

#if defined(__GNUC__)
#define AG_DEFAULT __attribute__((weak))
#else
#define AG_DEFAULT
#endif

AG_DEFAULT int32_t ag_system_open(const char *name) {
    (void)name;
    return -1;
}

AG_DEFAULT int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes) {
    (void)handle;
    (void)offset;
    (void)data;
    (void)bytes;
    return -1;
}

AG_DEFAULT int32_t ag_system_open_file(const char *name, bool fresh) {
    (void)name;
    (void)fresh;
    return -1;
}

AG_DEFAULT int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes) {
    (void)handle;
    (void)offset;
    (void)data;
    (void)bytes;
    return -1;
}

AG_DEFAULT void ag_system_close(int32_t handle) {
    (void)handle;
}

AG_DEFAULT uint32_t ag_system_cycles(void) {
    return 0;
}

AG_DEFAULT int ag_system_random(void *data, uint32_t bytes) {
    (void)data;
    (void)bytes;
    return -1;
}

AG_DEFAULT ag_memory ag_system_memory(void) {
    const ag_memory none = {0, 0, 0, 0, 0, 0};
    return none;
}

/* docs/store.md of autodiff_gen describes a driver. */
AG_DEFAULT int ag_flash_open(ag_flash *flash, uint32_t state_bytes) {
    (void)flash;
    (void)state_bytes;
    return AG_STORE_ERR_NO_FLASH;
}
