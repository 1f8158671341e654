/* Functions of ag_math.h for Cortex-M55: those of Cortex-M4F, as it has FMA too, and compilers call functions
 * for each element: ag_expf_fma, ag_sigmoidf_fma, ag_tanhf_fma, ag_erff_fma, ag_sinf_fma, ag_cosf_fma. */
#ifndef AG_MATH_MVE_H
#define AG_MATH_MVE_H

#include "armv7em/ag_math_fma.h"

#endif
