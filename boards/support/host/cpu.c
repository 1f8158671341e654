/* A program built for instructions that the CPU lacks exits with a message before it executes one of them. */
#include <stdio.h>
#include <stdlib.h>

#if defined __AVX512F__ && defined __AVX512VL__ && defined __AVX512BW__ && defined __AVX512DQ__
#define REQUIRED "AVX-512 (x86-64-v4)"
#define CPU_HAS_IT                                                                                           \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&                              \
     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
#define OTHER_BOARDS "host_avx2 or host"
#elif defined __AVX2__ && defined __FMA__
#define REQUIRED "AVX2 and FMA (x86-64-v3)"
#define CPU_HAS_IT (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define OTHER_BOARDS "host"
#endif

#ifdef REQUIRED
__attribute__((constructor, target("arch=x86-64"))) static void check_cpu(void) {
    __builtin_cpu_init();
    if (!CPU_HAS_IT) {
        fputs("error: this program needs " REQUIRED ", which this CPU lacks; build with board=" OTHER_BOARDS
              "\n",
              stderr);
        _Exit(1);
    }
}
#else
typedef int nothing_to_check;
#endif
