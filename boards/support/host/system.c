/* ag_system.h by the C library: the same main program on the host. */
#include "ag_console.h"
#include "ag_system.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 4 };
static FILE *file[FILES];
static uint32_t position[FILES];

void ag_system_write(const char *text, uint32_t bytes) {
    (void)fwrite(text, 1, bytes, stdout);
    (void)fflush(stdout);
}

static int32_t open_file(const char *name, const char *mode) {
    for (int32_t i = 0; i < FILES; i++) {
        if (file[i] == NULL) {
            file[i] = fopen(name, mode);
            position[i] = 0;
            return file[i] == NULL ? -1 : i;
        }
    }
    return -1;
}

int32_t ag_system_open(const char *name) {
    return open_file(name, "rb");
}

int32_t ag_system_open_file(const char *name, bool fresh) {
    return open_file(name, fresh ? "w+b" : "r+b");
}

int ag_system_write_file(int32_t handle, uint32_t offset, const void *data, uint32_t bytes) {
    if (handle < 0 || handle >= FILES || file[handle] == NULL || offset > (uint32_t)INT_MAX) {
        return -1;
    }
    position[handle] = UINT32_MAX; /* the next read seeks */
    const bool done = fseek(file[handle], (long)offset, SEEK_SET) == 0 &&
                      fwrite(data, 1, bytes, file[handle]) == bytes && fflush(file[handle]) == 0;
    return done ? 0 : -1;
}

int ag_system_read(int32_t handle, uint32_t offset, void *data, uint32_t bytes) {
    if (handle < 0 || handle >= FILES || file[handle] == NULL) {
        return -1;
    }
    if (offset != position[handle] &&
        (offset > (uint32_t)INT_MAX || fseek(file[handle], (long)offset, SEEK_SET) != 0)) {
        return -1;
    }
    const size_t got = fread(data, 1, bytes, file[handle]);
    position[handle] = offset + (uint32_t)got;
    return got == bytes ? 0 : -1;
}

void ag_system_close(int32_t handle) {
    if (handle >= 0 && handle < FILES && file[handle] != NULL) {
        (void)fclose(file[handle]);
        file[handle] = NULL;
    }
}

void ag_system_exit(int status) {
    ag_print_flush();
    exit(status);
}

uint32_t ag_system_cycles(void) {
    return 0; /* a process does not know the cycles of one core */
}

int ag_system_random(void *data, uint32_t bytes) {
    const int32_t source = ag_system_open("/dev/urandom");
    const int status = ag_system_read(source, 0, data, bytes);
    ag_system_close(source);
    return status;
}

ag_memory ag_system_memory(void) {
    ag_memory none;
    memset(&none, 0, sizeof none);
    return none;
}
