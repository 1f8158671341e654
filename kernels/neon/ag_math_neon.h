/* Functions of ag_math.h that compilers call for each element: ag_sinf_fma and ag_cosf_fma of Cortex-M4F, as
 * Cortex-A has FMA too. */
#ifndef AG_MATH_NEON_H
#define AG_MATH_NEON_H

#include "armv7em/ag_math_fma.h"

#endif
