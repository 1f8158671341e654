/* A program for more instructions than this computer has says so before it runs into one of them. */
#include <stdio.h>
#include <stdlib.h>

#if defined __AVX512F__ && defined __AVX512VL__ && defined __AVX512BW__ && defined __AVX512DQ__
#define WANTED "AVX-512 (x86-64-v4)"
#define THERE                                                                                                \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&                              \
     __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
#define INSTEAD "host_avx2 or host"
#elif defined __AVX2__ && defined __FMA__
#define WANTED "AVX2 and FMA (x86-64-v3)"
#define THERE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define INSTEAD "host"
#endif

#ifdef WANTED
__attribute__((constructor, target("arch=x86-64"))) static void check_cpu(void) {
    __builtin_cpu_init();
    if (!THERE) {
        fputs("error: this program needs " WANTED ", which this computer lacks; build with board=" INSTEAD
              "\n",
              stderr);
        _Exit(1);
    }
}
#else
typedef int nothing_to_check;
#endif
