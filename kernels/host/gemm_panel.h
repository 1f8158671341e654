/* A panel of C in register tiles: elements of A that are broadcast times vectors of B.
 *
 *             LANES * VECTORS columns
 *           +----------------+
 *     ROWS  |  register tile |   B: k rows of VECTORS vectors, one multiply-add per sum and k
 *           +----------------+
 *           |  next rows     | */
#ifndef AG_HOST_GEMM_PANEL_H
#define AG_HOST_GEMM_PANEL_H

#include "vec.h"

/* The largest tile: as many sums as the registers hold in addition to the operands. */
enum { ROWS = LANES == 16 ? 8 : 4, VECTORS = 2 };

/* All rows of a panel of up to LANES * VECTORS columns. */
void ag_host_gemm_panel(const float *a, ptrdiff_t a_i, ptrdiff_t a_p, const float *b, ptrdiff_t ldb, float *c,
                        ptrdiff_t ldc, int32_t m, int32_t columns, int32_t k, float alpha, float beta);

#endif
