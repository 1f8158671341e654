/* The sweep on a bare Cortex-M in QEMU: code at 0, RAM at 0x20000000, output and exit by semihosting. */
#include "sweep.h"

void reset(void);

const uintptr_t vectors[] __attribute__((section(".vectors"), used)) = {0x20010000u, (uintptr_t)reset};

static int semihost(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void print(const char *text) {
    semihost(0x04, text);
}

static void print_crc(const char *name, uint32_t crc) {
    char hex[] = "00000000\n";
    for (int i = 0; i < 8; i++) {
        hex[i] = "0123456789abcdef"[(crc >> (28 - 4 * i)) & 15u];
    }
    print(name);
    print(" ");
    print(hex);
}

__attribute__((noinline)) static void sweep(void) {
    for (int which = 0; sweep_name(which); which++) {
        print_crc(sweep_name(which), sweep_crc(which, SWEEP));
    }
    print_crc("kernels", kernels_crc());
}

void reset(void) {
    *(volatile uint32_t *)0xe000ed88u |=
        0x00f00000u; /* enable the FPU, if present, before any float operation */
    __asm__ volatile("dsb\n isb");
    sweep();
    const uint32_t done[] = {0x20026u, 0u};
    semihost(0x20, done);
    for (;;) {
    }
}
