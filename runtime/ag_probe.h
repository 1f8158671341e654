/* AG_PROBE(id), an instrumentation point: the instructions from here to the next one are attributed to `id`;
 * 0 means nothing. The macro expands to nothing unless a benchmark build enables it by one of two
 * definitions.
 *
 * AG_PROBE_HINTS: a hint instruction that is a no-op on every core, at which bench/qemu/ag_count.c counts in
 * QEMU. Its address and id are stored in the debugging section `.debug_ag_probes`.
 *
 * AG_PROBE_CYCLES: a call of ag_probe, which reads the core's cycle counter; the benchmark's main program
 * defines it. */
#ifndef AG_PROBE_H
#define AG_PROBE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(AG_PROBE_CYCLES)
void ag_probe(uint32_t id);
#define AG_PROBE(id) ag_probe(id)
#elif defined(AG_PROBE_HINTS)
#if defined(__thumb__)
#define AG_PROBE_HINT ".inst.w 0xf3af80c0"
#elif defined(__arm__)
#define AG_PROBE_HINT ".inst 0xe320f0c0"
#elif defined(__aarch64__)
#define AG_PROBE_HINT "hint #127"
#else
#error "AG_PROBE_HINTS: no marker is known for this core"
#endif
#define AG_PROBE(id)                                                                                         \
    __asm__ volatile("1: " AG_PROBE_HINT "\n"                                                                \
                     ".pushsection .debug_ag_probes,\"\",%%progbits\n"                                       \
                     ".4byte 1b, %c0\n"                                                                      \
                     ".popsection"                                                                           \
                     :                                                                                       \
                     : "i"(id)                                                                               \
                     : "memory")
#else
#define AG_PROBE(id) ((void)0)
#endif

#ifdef __cplusplus
}
#endif
#endif
