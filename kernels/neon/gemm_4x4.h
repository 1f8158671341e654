/* The gemm family with the 4 x 4 micro-kernels. */
#ifndef AG_NEON_GEMM_4X4_H
#define AG_NEON_GEMM_4X4_H

#include "ag_kernels.h"

ag_gemm_f32_fn ag_gemm_nn_4x4_neon, ag_gemm_nt_4x4_neon, ag_gemm_tn_4x4_neon;

#endif
