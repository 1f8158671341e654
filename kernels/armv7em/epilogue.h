/* The epilogue of a stored matrix y[m,n], and of its columns from j on, element by element. */
#ifndef AG_ARMV7EM_EPILOGUE_H
#define AG_ARMV7EM_EPILOGUE_H

#include "tiles/epilogue.h"

void ag_finish_columns_armv7em(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n, int32_t j);

#endif
