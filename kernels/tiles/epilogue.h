/* The epilogue of a stored matrix y[m,n] (ag_kernels.h) in the backend's instructions: epilogue.c. */
#ifndef AG_TILES_EPILOGUE_H
#define AG_TILES_EPILOGUE_H

#include "ag_kernels.h"
#include "tiles/symbols.h"

typedef void ag_finish_fn(const ag_epilogue *e, float *y, int32_t ldy, int32_t m, int32_t n);
ag_finish_fn AG_SYMBOL(finish);

/* Nothing where e is NULL. */
#define AG_FINISH(e, y, ldy, m, n)                                                                           \
    do {                                                                                                     \
        if ((e) != NULL) {                                                                                   \
            AG_SYMBOL(finish)(e, y, ldy, m, n);                                                              \
        }                                                                                                    \
    } while (0)

#endif
