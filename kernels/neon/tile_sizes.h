/* AArch64 has 32 registers of four floats, AArch32 16. */
#define AG_TILE_M 4
#if defined __aarch64__
#define AG_TILE_N 16
#else
#define AG_TILE_N 8
#endif
#define AG_MICROKERNEL(name) ag_microkernel_##name##_neon
