/* C by blocks in registers, from the first product to the last: rows that are broadcast times vectors. */
#ifndef AG_HOST_GEMM_PANEL_H
#define AG_HOST_GEMM_PANEL_H

#include "vec.h"

/* The most rows and vectors of a block: as many sums as the registers hold beside the operands. */
enum { ROWS = LANES == 16 ? 8 : 4, VECTORS = 2 };

/* All rows of up to LANES * VECTORS columns. */
void ag_host_gemm_panel(const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c,
                        ptrdiff_t ldc, int32_t m, int32_t columns, int32_t k, float alpha, float beta);

#endif
