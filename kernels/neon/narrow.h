/* Tiles of 4 x 4, for matrices narrower than the tiles of vec.h: symbols ag_<kernel>_small_neon. */
#ifndef AG_NEON_NARROW_H
#define AG_NEON_NARROW_H

#undef AG_BACKEND
#define AG_BACKEND small_neon
#define AG_NEON_4X4 1
#define ag_finish_small_neon ag_finish_neon

#define ag_conv2d_dx_windows_f32_small_neon ag_conv2d_dx_windows_f32_neon
#define ag_gemv_f32_small_neon ag_gemv_f32_neon
#define ag_gemv_t_f32_small_neon ag_gemv_t_f32_neon

#endif
