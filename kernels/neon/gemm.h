/* The gemm family in blocks of four columns. */
#ifndef AG_NEON_GEMM_H
#define AG_NEON_GEMM_H

#include "ag_kernels.h"

ag_gemm_f32_fn ag_small_gemm_nn_neon, ag_small_gemm_nt_neon, ag_small_gemm_tn_neon;

#endif
