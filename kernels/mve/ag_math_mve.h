/* Functions of ag_math.h for Cortex-M55, which has FMA as Cortex-M4F does: compilers call the functions of
 * Cortex-M4F for each element, ag_expf_fma, ag_sigmoidf_fma, ag_tanhf_fma, ag_erff_fma, ag_sinf_fma and
 * ag_cosf_fma. */
#ifndef AG_MATH_MVE_H
#define AG_MATH_MVE_H

#include "armv7em/ag_math_fma.h"

#endif
